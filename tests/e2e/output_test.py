"""Goal: what a program or a terminal reads is whole and harmless: --json prints JSON and nothing
else, also when a command fails; results that cannot be written are a failure; odd bytes in
arguments and names are shown, not obeyed.
Method: the real executable with odd streams, arguments and environments."""

import json
import subprocess
import unittest

import job as e2e


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = e2e.temporary_folder()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.job = e2e.Job(cls.folder.name, 2, 2, 2, run_folder="good")
        result = cls.job.run()
        assert result.returncode == 0, result.stderr
        cls.generate = [e2e.HOLMES, "generate", "--checkpoint", str(cls.job.run_folder),
                        "--prompt", "line", "--tokens", "30"]
        cls.plan = [e2e.HOLMES, "plan", str(cls.job.file)]

    def shell(self, command, redirection):
        return subprocess.run(["/bin/sh", "-c", f'"$@" {redirection}', "sh", *command],
                              capture_output=True, text=True, timeout=30)

    def test_results_that_cannot_be_written(self):
        for command in (self.plan, [*self.plan, "--json"], [*self.plan, "--compare"],
                        self.generate, [e2e.HOLMES, "train", "--keys"], [e2e.HOLMES, "--version"],
                        [e2e.HOLMES, "--help"]):
            for redirection, why in ((">/dev/full", "No space left"), (">&-", "Bad file")):
                with self.subTest(command=command[1:3], redirection=redirection):
                    result = self.shell(command, redirection)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn("cannot write the result to stdout: " + why, result.stderr)
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_a_reader_that_goes_ends_generate(self):
        result = self.shell([*self.generate[:-1], "4000000000"], "| head -c 4")
        self.assertEqual((result.returncode, result.stdout), (0, "line"))

    def test_json_of_a_command_that_fails(self):
        for command, code in (
                ([*self.plan, "--json", "--set", "a.b=1"], "invalid_argument"),
                ([*self.plan, "--json", "--bogus"], "invalid_argument"),
                ([e2e.HOLMES, "plan", "/nowhere.toml", "--json"], "invalid_argument"),
                (self.job.command("--json"), "invalid_argument"),
                (self.job.command("--json", "--resume", "--set", "train.seed=9"),
                 "invalid_argument"),
                ([e2e.HOLMES, "bench", "p2p", "--bytes", "3", "--json"], "invalid_argument")):
            with self.subTest(command=command):
                result = subprocess.run(command, capture_output=True, text=True, timeout=30)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                said = json.loads(result.stdout)
                self.assertEqual((said["event"], said["code"]), ("error", code))
                self.assertIn(said["message"], result.stderr)

    def test_json_of_a_job_that_fails_and_of_a_comparison(self):
        job = e2e.Job(self.folder.name, 2, 2, 50, run_folder="fails")
        result = job.run("--json", "--set", "train.lr=100", "--set", "train.warmup_steps=0")
        self.assertEqual(result.returncode, 1, result.stderr)
        events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
        self.assertEqual(events[-2:], ["incident", "ended"])
        compared = subprocess.run([*self.plan, "--compare", "--json"], capture_output=True,
                                  text=True, timeout=30)
        rows = json.loads(compared.stdout)["strategies"]
        self.assertIn("holmes", [row["strategy"] for row in rows])
        self.assertTrue(all(("step_s" in row) != ("error" in row) for row in rows))

    def test_odd_bytes_are_shown(self):
        red = b"\x1b[31m\xff\nx"
        shown = b"\\x1b[31m\\xff\\nx"
        for command in ([e2e.HOLMES, red], [e2e.HOLMES, "train", red],
                        [e2e.HOLMES, "train", b"--" + red], [e2e.HOLMES, "bench", red],
                        [*self.plan, "--set", b"run." + red + b"=1"],
                        [*self.plan, "--log-level", red],
                        [e2e.HOLMES, "generate", "--checkpoint", red, "--prompt", "a"]):
            with self.subTest(command=command):
                result = subprocess.run(command, capture_output=True, timeout=30)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(shown, result.stderr)
                self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)
                self.assertNotIn(b"\x1b", result.stderr)

    def test_a_prompt_comes_back_as_it_is(self):
        for prompt in (b"\xff\xfe", b"\x1b[0m", b"a\r\n", "😀".encode(), b"--help", b"-"):
            with self.subTest(prompt=prompt):
                result = subprocess.run([*self.generate[:5], prompt, "--tokens", "2"],
                                        capture_output=True, timeout=30)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(result.stdout.startswith(prompt))


if __name__ == "__main__":
    unittest.main()
