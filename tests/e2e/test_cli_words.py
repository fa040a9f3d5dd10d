"""The words of rayctl: one table for parsing, help, completion, man pages and docs/cli.md; wrong
words are one line and exit code 2."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from shell import BIN, REPO


def command_names():
    """Returns all commands of docs/cli.md, "job submit" among them."""
    text = subprocess.run(
        [BIN / "rayctl", "command-doc"], capture_output=True, text=True, check=True
    ).stdout
    return re.findall("^## rayctl (.+)$", text, re.MULTILINE)


COMMANDS = command_names()
GROUPS = ["job", "train"]


def test_commands_below_others_are_in_the_table(shell):
    assert {
        "metrics launch-prometheus",
        "metrics shutdown-prometheus",
        "logs task",
        "job submit",
    } <= set(COMMANDS)
    assert "launch-prometheus" in shell.ok("metrics", "--help")


def complaint(done):
    assert done.returncode == 2 and done.stdout == "", done
    assert re.fullmatch(r"Error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options_and_too_many_words_are_one_line_and_exit_code_2(shell, command):
    words = command.split()
    if command in GROUPS:
        assert "no such command" in complaint(shell.run(*words, "frobnicate"))
        return
    assert "no such option: --frobnicate" in complaint(shell.run(*words, "--frobnicate"))
    if command != "job submit":
        assert complaint(shell.run(*words, "one", "two", "three", "four", "five"))
    assert f"Usage: rayctl {words[0]}" in shell.ok(*words, "--help")
    assert not shell.processes()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_examples(shell, command):
    text = shell.ok("help", *command.split())
    assert text.startswith(f"Usage: rayctl {command} ")
    if command in GROUPS:
        return
    assert "--help" in text and "\nExamples:\n" in text
    examples = [
        line.strip()
        for line in text.split("\nExamples:\n")[1].splitlines()
        if line.startswith("  rayctl ")
    ]
    assert examples
    for example in examples:
        words = shlex.split(example)[1:]
        words = words[
            : next((i for i, word in enumerate(words) if word in (">", "&&")), len(words))
        ]
        at = next((i for i, word in enumerate(words) if word == "--"), len(words))
        # rayctl reads all words before it prints the help: an option that does not exist would end
        # it with exit code 2.
        shell.ok(*words[:at], "--help", *words[at:])


@pytest.mark.parametrize(
    "typed, meant",
    [
        (["statsu"], "status"),
        (["drain"], "drain-node"),
        (["job", "sumbit"], "submit"),
        (["train", "shwo"], "show"),
        (["trian"], "train"),
        (["status", "--adress=x"], "--address"),
        (["list", "nodes", "--formt=json"], "--format"),
        (["help", "tiemline"], "timeline"),
        (["--verson"], "--version"),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(shell, typed, meant):
    assert f"did you mean {meant}?" in complaint(shell.run(*typed))


def test_help_takes_values_behind_a_command(shell):
    assert shell.ok("help", "summary", "tasks") == shell.ok("help", "summary") and shell.ok(
        "help", "list", "nodes"
    ) == shell.ok("help", "list")
    assert shell.ok("help", "logs", "task").startswith("Usage: rayctl logs task ")
    assert "no such command: summary colours" in complaint(shell.run("help", "summary", "colours"))


def test_commands_of_others_are_named_absent(shell):
    assert "cluster launcher is not part of this release" in complaint(
        shell.run("up", "cluster.yaml")
    )


def test_options_in_front_of_the_command(shell):
    assert shell.ok("--logging-level", "debug", "version") == shell.ok(
        "--logging-format=x", "version"
    )
    for level in ("INFO", "Warning", "warn", "FATAL", "NotSet"):
        shell.ok(f"--logging-level={level}", "version")
    assert "it takes debug" in complaint(shell.run("--logging-level=loud", "version"))


def test_the_documentation_is_what_the_program_says():
    said = subprocess.run(
        [BIN / "rayctl", "command-doc"], capture_output=True, text=True, check=True
    ).stdout
    assert said == (REPO / "docs" / "cli.md").read_text(), "docs/cli.md: run scripts/gen_docs"


def test_man_pages_are_made_and_sound(shell):
    pages = REPO / "build" / "shell" / "man1"
    assert {f"rayctl-{command.replace(' ', '-')}.1" for command in COMMANDS} | {
        "rayctl.1",
        "ray.1",
    } == {page.name for page in pages.iterdir()}
    if not shutil.which("groff"):
        pytest.skip("no groff here")
    for page in pages.iterdir():
        if page.name == "ray.1":
            continue
        done = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww", "-z", str(page)], capture_output=True, text=True
        )
        assert done.returncode == 0 and done.stderr == "", (page.name, done.stderr)


def test_the_environment_of_the_build_leads_to_the_man_pages():
    """build/env puts the build's man pages before the system's, for which an empty last entry of
    MANPATH stands."""
    script = f'. {REPO}/build/env && printf %s "$MANPATH"'
    for given in ("", "/mine"):
        said = subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, "MANPATH": given},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        pages, rest = said.split(":", 1)
        assert rest == given and (pathlib.Path(pages) / "man1" / "rayctl.1").is_file()


# ---- completion, by the shells themselves


def completed(shell, line):
    """Returns the words that bash offers at the end of `line`."""
    script = f"""source <({BIN}/rayctl completion bash)
COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}; [[ $(complete -p {line.split()[0]}) == *" -F _rayctl_complete "* ]] && _rayctl_complete; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(
        ["bash", "-c", script],
        env={**shell.env, "PATH": f"{BIN}:{shell.env['PATH']}"},
        cwd=shell.scratch,
        capture_output=True,
        text=True,
    )
    assert done.stderr == "", done.stderr
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(shell):
    assert set(completed(shell, "rayctl sta")) == {"start", "status", "stack"}
    assert completed(shell, "rayctl job su") == ["submit"]
    assert completed(shell, "rayctl list pl") == ["placement-groups"]
    assert completed(shell, "rayctl profile ") == ["all", "head", "node-manager", "object-store"]
    assert completed(shell, "rayctl health-check --component ") == ["head", "nodes", "dashboard"]
    assert "--address" in completed(shell, "rayctl status --")
    assert completed(shell, "rayctl status --format ") == ["table", "json", "yaml"]
    # Before it asks for words, bash splits the word at '='.
    assert completed(shell, "rayctl status --format=j") == ["json"]
    assert completed(shell, "ray job su") == ["submit"], "the second name"
    (shell.scratch / "trace.json").touch()
    assert completed(shell, "rayctl timeline -o tr") == ["trace.json"]


@pytest.mark.parametrize(
    "name, check", [("zsh", ["-n"]), ("fish", ["--no-execute"]), ("bash", ["-n"])]
)
def test_scripts_parse_in_their_shells(shell, name, check):
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    script = shell.scratch / name
    script.write_text(shell.ok("completion", name))
    done = subprocess.run(
        [name, *check, str(script)], env=shell.env, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_fish_completes(shell):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    (shell.scratch / "complete.fish").write_text(shell.ok("completion", "fish"))
    done = subprocess.run(
        ["fish", "-c", "source complete.fish; complete -C 'rayctl job su'"],
        env={**shell.env, "PATH": f"{BIN}:{shell.env['PATH']}"},
        cwd=shell.scratch,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split("\t")[0] == "submit", done


# ---- colours


def test_colours_only_on_a_terminal_unless_asked_for(shell):
    plain = shell.run("frobnicate").stderr
    assert "\x1b" not in plain
    assert "\x1b[1;31mError:\x1b[0m" in shell.run("frobnicate", FORCE_COLOR="1").stderr
    assert "\x1b" not in shell.run("frobnicate", FORCE_COLOR="1", NO_COLOR="1").stderr
    assert (
        "\x1b[1;31mError:\x1b[0m"
        in shell.run("job", "status", "--log-color=true", "x", "--address=127.0.0.1:1").stderr
    )
    on_terminal = ["script", "-qec", f"{BIN}/rayctl frobnicate", "/dev/null"]
    if shutil.which("script"):
        told = subprocess.run(
            on_terminal,
            env={**shell.env, "TERM": "xterm"},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        ).stdout
        assert "\x1b[1;31mError:" in told
        assert (
            "\x1b"
            not in subprocess.run(
                on_terminal,
                env={**shell.env, "TERM": "xterm", "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            ).stdout
        )
