"""`robota completions`: what a shell needs to complete the command line. Nothing is started while typing."""

from __future__ import annotations

from importlib import import_module

import click

from robota.cli.flags import Flag, all_flags
from robota.cli.subcommands import SUBCOMMANDS

HOW = {
    "bash": "robota completions bash > ~/.local/share/bash-completion/completions/robota",
    "zsh": "robota completions zsh > ~/.zfunc/_robota, with ~/.zfunc in fpath",
    "fish": "robota completions fish > ~/.config/fish/completions/robota.fish",
}
_FILES = frozenset(("FILE", "DIR", "JSON", "SCHEMA"))
"""Values that are, or may be, names of files."""


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\n" + "\n".join(HOW.values()),
)
@click.argument("shell", type=click.Choice(list(HOW)))
def command(shell: str) -> None:
    """Print the completions for a shell."""
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell]())


def list_subcommands() -> dict[str, list[str]]:
    """The commands below each command."""
    found = {}
    for name, (module, _) in SUBCOMMANDS.items():
        below = import_module(module).command
        found[name] = sorted(below.commands) if isinstance(below, click.Group) else []
    return found


def bash() -> str:
    below = "\n".join(
        f'      {name}) COMPREPLY=($(compgen -W "{" ".join(names)}" -- "$current")); return ;;'
        for name, names in list_subcommands().items()
        if names
    )
    values = "\n".join(_bash_value(flag) for flag in all_flags() if flag.metavar and not flag.optional)
    return f"""\
# bash completion for robota
_robota() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [ "$COMP_CWORD" -eq 2 ]; then
    case "$previous" in
{below}
    esac
  fi
  case "$previous" in
{values}
  esac
  if [ "${{current:0:1}}" = "-" ]; then
    COMPREPLY=($(compgen -W "{" ".join(name for flag in all_flags() for name in flag.names)}" -- "$current"))
  elif [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(SUBCOMMANDS)}" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _robota robota"""


def _bash_value(flag: Flag) -> str:
    names = "|".join(flag.names)
    if flag.choices:
        return f'    {names}) COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$current")); return ;;'
    what = 'COMPREPLY=($(compgen -f -- "$current"))' if flag.metavar in _FILES else "COMPREPLY=()"
    return f"    {names}) {what}; return ;;"


def zsh() -> str:
    flags = "\n".join(f"    {_zsh_flag(flag, name)} \\" for flag in all_flags() for name in flag.names)
    commands = "\n".join(f"    {_quote(f'{name}:{about}')}" for name, (_, about) in SUBCOMMANDS.items())
    below = "\n".join(
        f"      {name}) compadd -- {' '.join(names)} ;;"
        for name, names in list_subcommands().items()
        if names
    )
    return f"""\
#compdef robota
_robota() {{
  local -a commands
  commands=(
{commands}
  )
  if (( CURRENT == 3 )); then
    case "$words[2]" in
{below}
    esac
  fi
  _arguments \\
{flags}
    '1: :{{_describe command commands}}' \\
    '*:file:_files'
}}
_robota "$@\""""


def _zsh_flag(flag: Flag, name: str) -> str:
    about = flag.help.replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if flag.metavar:
        what = f"({' '.join(flag.choices)})" if flag.choices else "_files" if flag.metavar in _FILES else " "
        value = f"{'::' if flag.optional else ':'}{flag.metavar.lower()}:{what}"
    return _quote(f"{'*' if flag.is_list else ''}{name}[{about}]{value}")


def fish() -> str:
    lines = ["# fish completion for robota", "complete -c robota -f"]
    for name, (_, about) in SUBCOMMANDS.items():
        lines.append(f"complete -c robota -n __fish_use_subcommand -a {name} -d {_quote(about)}")
    for name, names in list_subcommands().items():
        if names:
            where = f"__fish_seen_subcommand_from {name}"
            lines.append(f"complete -c robota -n {_quote(where)} -a {_quote(' '.join(names))}")
    lines += [_fish_flag(flag) for flag in all_flags()]
    return "\n".join(lines)


def _fish_flag(flag: Flag) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    value = ""
    if flag.metavar and not flag.optional:
        value = f" -x -a {_quote(' '.join(flag.choices))}" if flag.choices else " -r"
        value += " -F" if flag.metavar in _FILES else ""
    return f"complete -c robota {names}{value} -d {_quote(flag.help)}"


def _quote(text: str) -> str:
    """For all three shells, which agree on single quotes but for one letter."""
    return "'" + text.replace("\\", "\\\\").replace("'", "") + "'"
