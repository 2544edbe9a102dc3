"""Goal: the service example trains, answers meanwhile, and ends cleanly on SIGTERM and POST /stop.
Method: it is driven over loopback as a client and Prometheus would."""

import json
import os
import re
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import job as e2e


class Service(unittest.TestCase):
    def setUp(self):
        temporary = e2e.temporary_folder()
        self.addCleanup(temporary.cleanup)
        self.job = e2e.Job(temporary.name, 1, 2, 1000000)

    def start(self, *arguments):
        process = subprocess.Popen([os.environ["EXAMPLE"], str(self.job.file), *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(e2e.end, process)
        self.url = process.stdout.readline().removeprefix("service: ").strip()
        return process

    def ask(self, path, method="GET"):
        """Status code, body and headers."""
        request = urllib.request.Request(self.url + path, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def status(self):
        code, body, _ = self.ask("/status")
        self.assertEqual(code, 200)
        return json.loads(body)

    def wait_for_steps(self, count):
        self.assertTrue(e2e.wait_until(lambda: self.status()["steps_done"] >= count, 60))

    def generate(self, **parameters):
        code, body, headers = self.ask("/generate?" + urllib.parse.urlencode(parameters))
        return code, json.loads(body), headers

    def terminate(self, process):
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def test_answers_while_it_trains_and_after_a_stop(self):
        process = self.start()
        self.wait_for_steps(3)
        status = self.status()
        self.assertEqual((status["phase"], status["members"]), ("training", ["a0", "a1"]))
        code, answer, headers = self.generate(prompt="line")
        self.assertEqual((code, headers["Retry-After"]), (503, "1"))
        self.assertIn("checkpoint", answer["error"])
        code, body, _ = self.ask("/stop", "POST")
        self.assertEqual(code, 202)
        self.assertIn(json.loads(body)["phase"], ("ending", "over"))
        self.assertTrue(e2e.wait_until(lambda: self.status()["phase"] == "over", 60))
        self.assertEqual(self.status()["outcome"], "interrupted")
        code, first, _ = self.generate(prompt="line", tokens=20)
        self.assertEqual(code, 200)
        self.assertGreaterEqual(len(first["text"]), 10)
        self.assertEqual(self.generate(prompt="line", tokens=20)[1], first)
        self.assertEqual(self.terminate(process), (0, "service: the job interrupted\n", ""))
        self.assertIsNotNone(self.job.checkpoint())

    def test_sigterm_saves_and_the_next_start_goes_on(self):
        process = self.start()
        self.wait_for_steps(3)
        self.assertEqual(self.terminate(process), (0, "service: the job interrupted\n", ""))
        saved = int(self.job.checkpoint().name.removeprefix("step-"))
        self.assertGreaterEqual(saved, 3)
        process = self.start()
        self.wait_for_steps(saved + 1)
        self.assertEqual(self.generate(prompt="line", tokens=5)[0], 200)
        self.assertEqual(self.terminate(process)[0], 0)

    def test_metrics_are_what_prometheus_reads(self):
        process = self.start()
        self.wait_for_steps(3)
        self.assertTrue(e2e.wait_until(  # traffic comes with heartbeats
            lambda: "holmes_nic_sent_bytes_total{" in self.ask("/metrics")[1], 60))
        code, text, headers = self.ask("/metrics")
        self.assertEqual(code, 200)
        self.assertIn("text/plain", headers["Content-Type"])
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.assertEqual(set(kinds), set(re.findall(r"^# HELP (\S+) \S", text, re.M)))
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line).groups()
                family = re.sub("_(sum|count)$", "", name)
                self.assertIn(family, kinds)
                self.assertEqual(kinds[family] == "counter", name.endswith("_total"), name)
                self.assertNotRegex(name, "_(ms|us|milliseconds|kb|mb)(_|$)")
                values[name + (labels or "")] = float(value)
        self.assertGreaterEqual(values["holmes_steps_total"], 3)
        self.assertEqual(values["holmes_members"], 2)
        self.assertGreater(values["holmes_step_duration_seconds_sum"], 0)
        self.assertIn('holmes_nic_sent_bytes_total{host="a0",nic="fast0"}', values)
        self.assertEqual(self.terminate(process)[0], 0)

    def test_a_stop_with_and_without_a_body(self):
        for request in ("", "Content-Length: 0\r\n", "Content-Length: 4\r\n\r\nstop"):
            process = self.start()
            host, port = self.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port)), timeout=30) as client:
                head = "POST /stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + request
                client.sendall((head if request.endswith("stop") else head + "\r\n").encode())
                answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
            self.assertIn(" 202 ", answer.splitlines()[0], request)
            self.assertTrue(e2e.wait_until(lambda: self.status()["phase"] == "over", 60))
            self.assertEqual(self.terminate(process)[0], 0)

    def test_bad_requests_are_named(self):
        process = self.start()
        for parameters, word in (({}, "prompt"), ({"prompt": "a", "tokens": "many"}, "tokens"),
                                 ({"prompt": "a", "tokens": "1000000"}, "tokens"),
                                 ({"prompt": "a", "tokens": "-1"}, "tokens")):
            code, answer, _ = self.generate(**parameters)
            self.assertEqual(code, 400, parameters)
            self.assertIn(word, answer["error"])
        self.assertEqual(self.ask("/nothing")[0], 404)
        self.assertEqual(self.ask("/stop")[0], 404)  # only by POST
        self.assertEqual(self.terminate(process)[0], 0)

    def test_sigterm_at_once(self):
        process = self.start()
        code, output, errors = self.terminate(process)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output, "service: the job interrupted\n")

    def test_a_bad_job_and_a_taken_port(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            process = self.start(str(port))
            self.assertIn(str(port), process.communicate(timeout=60)[1])
            self.assertEqual(process.returncode, 1)
        self.job.file.write_text("[train]\nstps = 1\n")
        process = self.start()
        self.assertRegex(process.communicate(timeout=60)[1], r"\Aservice: .*did you mean.*\n\Z")
        self.assertEqual(process.returncode, 2)


if __name__ == "__main__":
    unittest.main()
