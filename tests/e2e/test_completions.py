"""What shells offer behind `robota`: each shell reads its script and completes, as when somebody types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal
from tests.support.command import robota

OFFERED = {
    "robota sess": {"sessions"},
    "robota sessions ex": {"export"},
    "robota sessions list --": {"--all", "--help", "--json", "--number"},
    "robota sessions export talk --format ": {"markdown", "html", "json"},
    "robota plugin marketplace ": {"add", "list", "remove", "update"},
    "robota mcp ": {"add", "get", "list", "login", "remove", "serve"},
    "robota completions ": {"bash", "zsh", "fish"},
    "robota replay --against ": {"tools", "rules", "model"},
    "robota --permission-mode pl": {"plan"},
    "robota -p go --fo": {"--fork-session"},
    "robota serve --po": {"--port"},
    "robota serve --fo": {"--fork-session"},
    "robota config set budget.maxT": {"budget.maxTokens", "budget.maxToolCalls"},
    "robota auth set an": {"anthropic"},
    "robota permissions test ex": {"examples.txt"},
    "robota model use ": set(),
}


@pytest.fixture
def script(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    assert shutil.which(request.param), f"{request.param} is missing: `make test-system` installs it"
    done = robota("completions", request.param, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "examples.txt").touch()
    path = tmp_path / "_robota"
    path.write_text(done.stdout)
    return path


def ask(script: Path, *command: str) -> set[str]:
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=True)
    return {line.split("\t")[0] for line in done.stdout.splitlines() if line}


def complete_in_bash(script: Path, *words: str) -> set[str]:
    typed = " ".join(f"'{word}'" for word in words)
    run = f"source ./_robota; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _robota"
    return ask(script, "bash", "-c", f'{run}; printf "%s\\n" "${{COMPREPLY[@]}}"')


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes(script: Path) -> None:
    for line, offered in OFFERED.items():
        assert (line, complete_in_bash(script, *line.split(" "))) == (line, offered)
    assert complete_in_bash(script, "robota", "--effort", "=", "m") == {"minimal", "medium", "max"}
    assert complete_in_bash(script, "robota", "--sandbox", "=") == {"auto", "required", "off"}


@pytest.mark.system
@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes(script: Path) -> None:
    for line, offered in OFFERED.items():
        found = ask(script, "fish", "--no-config", "-c", f"source ./_robota; complete -C '{line}'")
        assert (line, found) == (line, offered)


@pytest.mark.system
@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_completes(script: Path) -> None:
    """It lists what fits above its prompt, and completes the word at once if only one does."""
    setup = 'PS1="here> "; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000; clear\n'
    with Terminal(["zsh", "-f", "-i"], cwd=script.parent, columns=120) as terminal:
        for line, offered in OFFERED.items():
            terminal.type(setup)
            terminal.until(lambda shown: shown.lines == ["here>"], "an empty screen")
            terminal.type(f"{line}\t\t")
            alone = f"here> {line.rpartition(' ')[0]} {''.join(offered)}".rstrip()
            expected = offered if len(offered) > 1 else {alone}
            for word in expected:
                terminal.until(word, f"{word} behind {line!r}")
            terminal.type("\x03")
