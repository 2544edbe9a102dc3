#!/usr/bin/env python3
"""Writes manual pages and bash completion from what the executable's --help says, so that they
cannot differ from it.

Usage: make_pages.py HOLMES VERSION FOLDER
       writes FOLDER/man1/holmes.1, a page for each command, and FOLDER/completions/holmes
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HELP_COLUMN = 30
FILES = [
    ("RUN/metrics.jsonl", "One line of JSON for each step of a run."),
    ("RUN/checkpoints/", "Checkpoints in safetensors files, with Hugging Face's names for GPT-2."),
    ("RUN/logs/HOST.log", "The log of a host's agent."),
]
ENVIRONMENT = [
    ("MASTER_ADDR, MASTER_PORT", "Where holmes agent finds the coordinator, when no option says so."),
    ("NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_IB_DISABLE",
     "Which NICs are kept out of plans; the plan says where they changed it."),
    ("NO_COLOR", "When set, nothing is coloured."),
]


@dataclass
class Item:
    """A line of a list in a help text."""
    head: str
    help: str

    @property
    def names(self):
        return re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", self.head.split(" ")[0])

    @property
    def rest(self):
        """What stands behind the names: the kind of value, and what goes with it."""
        after = self.head.split(" ", 1)
        return after[1].replace("REQUIRED", "(required)") if len(after) > 1 else ""

    @property
    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.rest)
        return found.group(1).split(",") if found else []

    @property
    def takes_value(self):
        return bool(re.match(r"[A-Z]", self.rest)) and not self.rest.startswith("Excludes")


@dataclass
class Command:
    words: list
    summary: str
    usage: str
    footer: str
    lists: dict
    commands: list = field(default_factory=list)

    @property
    def name(self):
        return " ".join(self.words)

    @property
    def page(self):
        return "-".join(self.words)


def parse_help(words, text):
    lines = text.rstrip("\n").split("\n")
    summary, usage = lines[0], lines[1].removeprefix("Usage: ")
    lists, title, footer = {}, None, []
    for line in lines[2:]:
        if re.fullmatch(r"[A-Z]\w+:", line):
            title = line[:-1]
            lists[title] = []
        elif line == "":
            title = None
        elif title is None:
            footer.append(line)
        elif line.startswith(" " * HELP_COLUMN):
            lists[title][-1].help = line.strip()
        elif line[:HELP_COLUMN].endswith(" "):
            lists[title].append(Item(line[:HELP_COLUMN].strip(), line[HELP_COLUMN:].strip()))
        else:
            lists[title].append(Item(line.strip(), ""))
    return Command(words, summary.rstrip("."), usage, " ".join(footer), lists)


def read_command(executable, words):
    text = subprocess.run([executable, *words[1:], "--help"], check=True, capture_output=True,
                          text=True, timeout=60).stdout
    command = parse_help(words, text)
    command.commands = [read_command(executable, [*words, item.head])
                        for item in command.lists.get("Subcommands", [])]
    return command


# --- Manual pages ---

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def entries(pairs):
    return "".join(f".TP\n{head}\n{roff(text)}\n" for head, text in pairs)


def option_head(item):
    names = ", ".join(f"\\fB{roff(name)}\\fR" for name in item.names) or \
        f"\\fI{roff(item.head.split(' ')[0])}\\fR"
    return names + (f" \\fI{roff(item.rest)}\\fR" if item.rest else "")


def option_lists(command):
    return "".join(entries((option_head(item), item.help) for item in command.lists.get(title, []))
                   for title in ("Positionals", "Options"))


def page(command, version, all_pages):
    text = f'.TH {command.page.upper()} 1 "" "holmes {version}" "Holmes"\n'
    text += f".SH NAME\n{roff(command.page)} \\- {roff(command.summary)}\n"
    text += f".SH SYNOPSIS\n.B {roff(command.usage)}\n"
    text += f".SH OPTIONS\n{option_lists(command)}"
    if command.commands:
        text += ".SH COMMANDS\n"
        if len(command.words) == 1:
            text += entries((f"\\fB{roff(c.page)}\\fR(1)", c.summary) for c in command.commands)
        else:
            text += "".join(f".SS {roff(c.name)}\n{roff(c.summary)}.\n.PP\n.B {roff(c.usage)}\n"
                            f"{option_lists(c)}" for c in command.commands)
    text += f".SH EXIT STATUS\n{roff(command.footer)}\n"
    if len(command.words) == 1:
        bold = lambda pairs: [(f"\\fB{roff(head)}\\fR", about) for head, about in pairs]
        text += f".SH FILES\n{entries(bold(FILES))}.SH ENVIRONMENT\n{entries(bold(ENVIRONMENT))}"
    others = ",\n".join(f".BR {roff(name)} (1)" for name in all_pages if name != command.page)
    return text + f".SH SEE ALSO\n{others}\n"


# --- Completion for bash ---

COMPLETION = """\
# Completion of holmes for bash. Made from holmes --help.
_holmes() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path=holmes i next
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="$path ${{COMP_WORDS[i]}}"
    case "$next" in
      {paths}) path=$next ;;
    esac
  done
  COMPREPLY=()
  case "$path $before" in
{values}
  esac
  case "$path" in
{words}
  esac
}}
complete -o default -F _holmes holmes
"""


def walk(command):
    yield command
    for each in command.commands:
        yield from walk(each)


def completion(root):
    values, words = [], []
    for command in walk(root):
        names = [c.words[-1] for c in command.commands]
        for item in command.lists.get("Options", []):
            names += [name for name in item.names if name.startswith("--")]
            patterns = "|".join(f'"{command.name} {name}"' for name in item.names)
            if item.choices:
                values.append(f"    {patterns}) COMPREPLY=($(compgen -W "
                              f"\"{' '.join(item.choices)}\" -- \"$word\")); return ;;")
            elif item.takes_value:
                values.append(f"    {patterns}) return ;;")
        for item in command.lists.get("Positionals", []):
            names += item.choices
        words.append(f"    \"{command.name}\") COMPREPLY=($(compgen -W "
                     f"\"{' '.join(names)}\" -- \"$word\")) ;;")
    paths = "|".join(f'"{command.name}"' for command in walk(root) if command is not root)
    return COMPLETION.format(paths=paths, values="\n".join(values), words="\n".join(words))


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    executable, version, folder = arguments
    root = read_command(executable, ["holmes"])
    man, completions = Path(folder) / "man1", Path(folder) / "completions"
    for made in (man, completions):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    pages = [root, *root.commands]
    for command in pages:
        text = page(command, version, [each.page for each in pages])
        (man / f"{command.page}.1").write_text(text)
    (completions / "holmes").write_text(completion(root))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
