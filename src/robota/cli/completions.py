"""`robota completions`: what a shell needs to complete the command line. Nothing is started while typing."""

from __future__ import annotations

from collections.abc import Iterable

import click

from robota.cli.command_tree import Option, Place, Value, find_places

HOW = {
    "bash": "robota completions bash > ~/.local/share/bash-completion/completions/robota",
    "zsh": "robota completions zsh > ~/.zfunc/_robota, with ~/.zfunc in fpath",
    "fish": "robota completions fish > ~/.config/fish/completions/robota.fish",
}


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\n" + "\n".join(HOW.values()),
)
@click.argument("shell", type=click.Choice(list(HOW)))
def command(shell: str) -> None:
    """Print the completions for a shell."""
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell](find_places()))


# --- bash ---------------------------------------------------------------------------------------------------


def bash(places: list[Place]) -> str:
    values = "\n".join(line for place in places for line in _bash_values(place))
    words = "\n".join(f"    {_quote(place.name)}) {_bash_words(place)} ;;" for place in places)
    return f"""\
# bash completion for robota
_robota() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" where="" at
  local options="" words="" files=""
  if [ "$previous" = "=" ]; then
    previous="${{COMP_WORDS[COMP_CWORD-2]}}"
  elif [ "$current" = "=" ]; then
    current=""
  fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$where ${{COMP_WORDS[at]}}" in
      {_patterns(places)}) where="${{where:+$where }}${{COMP_WORDS[at]}}" ;;
      *) break ;;
    esac
  done
  COMPREPLY=()
  case "$where:$previous" in
{values}
  esac
  case "$where" in
{words}
  esac
  if [ "${{current:0:1}}" = "-" ]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  if [ -z "$where" ] && [ "$COMP_CWORD" -gt 1 ]; then
    words=""
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ] && [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
    _robota_files "$files" "$current"
  fi
}}
_robota_files() {{
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$2"))
}}
complete -F _robota robota"""


def _bash_values(place: Place) -> Iterable[str]:
    for option in place.options:
        value = option.value
        if value is None or (value.optional and not value.words):
            continue
        where = "|".join(_quote(f"{place.name}:{name}") for name in option.names)
        if value.words:
            what = f'COMPREPLY=($(compgen -W {_quote(" ".join(value.words))} -- "$current"))'
        elif files := _bash_files((value,)):
            what = f'_robota_files {files} "$current"'
        else:
            what = ":"
        yield f"    {where}) {what}; return ;;"


def _bash_words(place: Place) -> str:
    names = " ".join(name for option in place.options for name in option.names)
    files = _bash_files(place.values)
    return f"options={_quote(names)} words={_quote(' '.join(place.offered))} files={_quote(files)}"


def _bash_files(values: Iterable[Value]) -> str:
    return (
        "-f"
        if any(each.files for each in values)
        else "-d"
        if any(each.directories for each in values)
        else ""
    )


def _patterns(places: list[Place]) -> str:
    """Where a word is a command: what was said before, a blank, and the word."""
    return "|".join(
        _quote(f"{' '.join(place.words[:-1])} {place.words[-1]}") for place in places if place.words
    )


# --- zsh ----------------------------------------------------------------------------------------------------


def zsh(places: list[Place]) -> str:
    cases = "\n".join(_zsh_place(place) for place in places)
    return f"""\
#compdef robota
_robota() {{
  local where="" at
  local -i depth=0
  local -a below
  for (( at = 2; at < CURRENT; at++ )); do
    case "$where $words[at]" in
      {_patterns(places)}) where="${{where:+$where }}$words[at]"; depth+=1 ;;
      *) break ;;
    esac
  done
  words=("${{(@)words[depth+1,-1]}}")
  (( CURRENT -= depth ))
  case "$where" in
{cases}
  esac
}}
_robota "$@\""""


def _zsh_place(place: Place) -> str:
    specs = [_zsh_option(option, name) for option in place.options for name in option.names]
    lines = [f"    {_quote(place.name)})"]
    if place.below:
        pairs = (_quote(f"{name}:{about}") for name, about in place.below.items())
        lines.append(f"      below=({' '.join(pairs)})")
        specs.append("'1: :{_describe command below}'")
    if not place.below or not place.words:
        specs += _zsh_arguments(place.values)
    lines.append("      _arguments " + " \\\n        ".join(specs))
    return "\n".join((*lines, "      ;;"))


def _zsh_arguments(values: tuple[Value, ...]) -> Iterable[str]:
    """What any argument takes is offered for all of them; behind one that zsh does not know it offers nothing
    at all."""
    words = " ".join(word for value in values for word in value.words)
    if words:
        yield _quote(f"*: :({words})")
    elif any(value.files for value in values):
        yield "'*:file:_files'"
    elif any(value.directories for value in values):
        yield "'*:directory:_files -/'"
    elif values:
        yield "'*: : '"


def _zsh_option(option: Option, name: str) -> str:
    about = option.about.replace("[", "(").replace("]", ")").replace(":", " ")
    taken, value = "", option.value
    if value is not None:
        what = f"({' '.join(value.words)})" if value.words else "_files" if value.files else " "
        what = "_files -/" if value.directories else what
        taken = f"{'::' if value.optional else ':'}{value.name}:{what}"
    return _quote(f"{'*' if option.repeatable else ''}{name}[{about}]{taken}")


# --- fish ---------------------------------------------------------------------------------------------------


def fish(places: list[Place]) -> str:
    lines = [
        "# fish completion for robota",
        "function __robota_at",
        "    set -l where ''",
        "    set -l words (commandline -opc)",
        "    set -e words[1]",
        "    for word in $words",
        '        switch "$where $word"',
        f"            case {_patterns(places).replace('|', ' ')}",
        '                set where (string trim -- "$where $word")',
        "            case '*'",
        "                break",
        "        end",
        "    end",
        '    test "$where" = "$argv"',
        "end",
        "complete -c robota -f",
    ]
    for place in places:
        here = f"complete -c robota -n {_quote(f'__robota_at {place.name}'.rstrip())}"
        first = here if place.words else "complete -c robota -n __fish_use_subcommand"
        lines += [f"{first} -a {name} -d {_quote(about)}" for name, about in place.below.items()]
        if words := " ".join(word for value in place.values for word in value.words):
            lines.append(f"{here} -a {_quote(words)}")
        elif any(value.files or value.directories for value in place.values):
            lines.append(f"{here} -F")
        lines += [f"{here} {_fish_option(option)}" for option in place.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in option.names)
    taken, value = "", option.value
    if value is not None and not value.optional:
        taken = f" -x -a {_quote(' '.join(value.words))}" if value.words else " -r"
        taken += " -F" if value.files else ""
        taken = " -x -a '(__fish_complete_directories)'" if value.directories else taken
    return f"{names}{taken} -d {_quote(option.about)}"


def _quote(text: str) -> str:
    """For all three shells, which agree on single quotes but for one letter."""
    return "'" + text.replace("\\", "\\\\").replace("'", "") + "'"
