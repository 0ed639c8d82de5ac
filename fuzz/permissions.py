"""Fuzzer of the permission evaluator: seeded questions whose right answers are known by construction.

`python fuzz/permissions.py --cases 100000 --seed 1` prints the number of cases per class, the cost relative
to a bare parse, and the first failures with a short reproduction; it exits 1 on any failure. Valid shell text
that the grammar cannot read may be held instead ("grammar gap"), and so may text with a line continuation in
the middle of a token ("continued").
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from linked_tree import build_tree, leads_nowhere, list_links
from shell_text import (
    ALLOW,
    COMPUTED,
    DENIED,
    DENY,
    NOT_ALLOWED,
    WRITING,
    compose,
    in_foreign,
    pick_leaves,
    splice,
)

from robota.core.permissions import evaluate_permission, explain_permission

MODES = ("plan", "default", "acceptEdits", "bypassPermissions")
STRICTNESS = {"auto": 0, "approve": 1, "deny": 2}
COST_LIMIT = 20.0
CONTROLS = "\n\t\r\0\x1b\x07\x7f\x9b\u00a0\u2028\u202e\u2066\u200b\ufeff\ud800"
SPECIAL = "abc rm-rf;|&<>()$`\\\"'{}[]*?~#!=%üé日🎉" + CONTROLS


class Case(NamedTuple):
    """One question for the evaluator together with the answers that are right."""

    label: str
    tool: Any
    tool_input: Any
    context: dict[str, Any]
    accepted: frozenset[str]


class Report(NamedTuple):
    counts: Counter[str]
    failures: list[str]


def known_answer(kind: str, mode: str) -> frozenset[str]:
    """What follows from the leaves: deny first, then what cannot be analysed, then allow, then the mode."""
    if kind in ("denied part", "denied and computed"):
        return frozenset({"deny"})
    if kind == "denied and broken":
        return frozenset({"deny"} if mode == "plan" else {"deny", "approve"})
    runs_by_mode = {
        "one part not allowed": MODES[3:],
        "writes in the workspace": MODES[2:],
        "all allowed": MODES,
    }
    if mode in runs_by_mode.get(kind, ()):
        return frozenset({"auto"})
    return frozenset({"deny"} if mode == "plan" else {"approve"})


@cache
def bash_parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parses(text: str) -> bool:
    return not bash_parser().parse(text.encode()).root_node.has_error


def make_shell_case(rng: random.Random) -> Case:
    kind = rng.choice(
        (
            *("all allowed", "all allowed", "one part not allowed", "denied part", "denied part"),
            *("writes in the workspace", "computed word", "denied and computed", "denied and broken"),
        )
    )
    tables = {
        "one part not allowed": NOT_ALLOWED,
        "writes in the workspace": WRITING,
        "computed word": COMPUTED,
    }
    leaves = pick_leaves(rng, DENIED if kind.startswith("denied") else tables.get(kind, ()))
    if kind == "denied and computed":
        leaves.insert(rng.randrange(len(leaves) + 1), rng.choice(COMPUTED))
    text = compose(rng, leaves)
    foreign = kind in ("all allowed", "denied part") and rng.random() < 0.2
    if foreign:
        text = in_foreign(rng, text)
    if kind == "denied and broken":
        text += rng.choice((" '", ' "', " )", " &&", " $(", "\0", " \x1b[2J", " \u202e", " ;;"))
    mode = rng.choice(MODES)
    accepted = known_answer(kind, mode)
    if not parses(text) and kind != "denied and broken":
        kind += " (grammar gap)"
        accepted |= {"deny" if mode == "plan" else "approve"}
    if foreign:
        # What only mentions a denied program cannot be told from what runs it.
        accepted = accepted if kind.startswith("denied") else frozenset({"approve", "deny"})
        kind += " (foreign)"
    spliced = splice(rng, text) if rng.random() < 0.15 else text
    if spliced != text:
        kind += " (continued)"
        accepted |= {"approve", "deny"}
    context = {"mode": mode, "allow": ALLOW, "deny": DENY, "cwd": "/srv/project", "home": "/home/nobody"}
    return Case(f"shell: {kind}", "Bash", {"command": spliced}, context, accepted)


def random_text(rng: random.Random) -> str:
    style = rng.random()
    if style < 0.4:
        return "".join(rng.choices(SPECIAL, k=rng.randrange(40)))
    if style < 0.6:
        return "".join(
            chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) for _ in range(rng.randrange(40))
        )
    if style < 0.9:
        pieces = [
            "rm -rf x",
            "ls -la",
            " ",
            "'",
            '"',
            "$(",
            ")",
            "`",
            "((",
            "))",
            "{",
            "}",
            ";",
            "&&",
            "|",
            "<<E\n",
            "\nE\n",
        ]
        pieces += [
            "if ",
            "then ",
            "fi",
            "for i in ",
            "do ",
            "done",
            "case x in ",
            "esac",
            "${",
            "\\\n",
            ">f",
            "[[ ",
            "]]",
            "a=(",
        ]
        return "".join(rng.choices(pieces, k=rng.randrange(25)))
    unit = rng.choice(
        ("(", "$(", "{ ", "a;", "'", "`", "\\", "${x:-", "<<A\n", "((", "sudo ", "!", "../", "if ")
    )
    return unit * rng.choice((10, 100, 1000))


def random_value(rng: random.Random, depth: int = 0) -> Any:
    choice = rng.randrange(9 if depth < 3 else 6)
    if choice < 4:
        return random_text(rng)
    if choice < 6:
        return rng.choice((None, True, 0, -1, 1.5, float("nan"), 10**30, b"ls", ()))
    if choice == 6:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    names = ("command", "file_path", "filePath", "path", "notebook_path", "url", "query", "pattern", "x", "")
    return {rng.choice(names): random_value(rng, depth + 1) for _ in range(rng.randrange(1, 4))}


def random_rules(rng: random.Random, tool: str) -> list[Any]:
    patterns = (
        "*",
        "rm *",
        "ls *",
        "ls:*",
        "src/**",
        "**/.env",
        "domain:a.example",
        "~/x",
        "//x",
        "[",
        "",
        "*a*a*b",
    )
    broken = ("", "(", "Bash(", "Bash)", "()", None, 3, "mcp__*", "*", "Bash(ls *)x", "\0")
    make = (lambda: tool, lambda: f"{tool}({rng.choice(patterns)})", lambda: rng.choice(broken))
    return [rng.choices(make, (1, 6, 2))[0]() for _ in range(rng.randrange(4))]


def make_arbitrary_case(rng: random.Random) -> Case:
    tools = (
        "Bash",
        "Read",
        "Write",
        "Edit",
        "Glob",
        "Grep",
        "WebFetch",
        "WebSearch",
        "Agent",
        "NotebookEdit",
    )
    tool = rng.choice((*tools, "mcp__a__b", "Frobnicate", "", random_text(rng)))
    key = {"Bash": "command", "WebFetch": "url", "WebSearch": "query", "Glob": "pattern", "Grep": "pattern"}
    direct = {key.get(tool, "file_path"): random_text(rng)}
    tool_input = direct if rng.random() < 0.6 else random_value(rng)
    mode = rng.choice(MODES) if rng.random() < 0.95 else random_text(rng)
    context: dict[str, Any] = {"mode": mode, "cwd": "/srv/project", "home": "/home/nobody"}
    context |= {name: random_rules(rng, tool) for name in ("allow", "deny", "ask") if rng.random() < 0.6}
    return Case("arbitrary input", tool, tool_input, context, frozenset(STRICTNESS))


def make_path_case(rng: random.Random, root: Path, names: Sequence[str]) -> Case:
    """Allow reaches only what really lies in the rule's tree; deny reaches everything that does."""
    area = rng.choice(names)
    steps = [rng.choice((*names, "..", ".", "")) for _ in range(rng.randint(1, 5))]
    path = rng.choice(("", f"{root}/", "./")) + "/".join(steps or ["a"]) + "/f"
    if any(leads_nowhere(root / place) for place in (path, area)):
        return Case("path: loop", "Write", {"file_path": path}, {"cwd": str(root)}, frozenset(STRICTNESS))
    inside_area = os.path.realpath(root / path).startswith(os.path.realpath(root / area) + "/")
    context: dict[str, Any] = {"cwd": str(root), "home": "/home/nobody"}
    if rng.random() < 0.5:
        context["allow"] = [f"Write({rng.choice(('', f'{root}/'))}{area}/**)"]
        return Case(
            "path: allow",
            "Write",
            {"file_path": path},
            context,
            frozenset(STRICTNESS) - (set() if inside_area else {"auto"}),
        )
    context["deny"] = [f"Read({rng.choice(('', f'{root}/'))}{area}/**)"]
    return Case(
        "path: deny", "Read", {"file_path": path}, context, frozenset({"deny"} if inside_area else STRICTNESS)
    )


# -- checks ---------------------------------------------------------------------------------------


def ask(case: Case, **changes: Any) -> str:
    return evaluate_permission(case.tool, case.tool_input, **(case.context | changes))


def check_answer(case: Case) -> str | None:
    try:
        answer = ask(case)
    except Exception as error:  # noqa: BLE001 - the evaluator is total, so whatever it raises is the finding
        return f"raised {type(error).__name__}: {error}"
    if answer not in case.accepted:
        reason = explain_permission(case.tool, case.tool_input, **case.context).reason
        return f"expected {' or '.join(sorted(case.accepted))}, got {answer}: {reason}"
    return None


def check_relations(rng: random.Random, case: Case) -> str | None:
    """Changes that may only make the answer stricter, only laxer, or must not open what was held."""
    before = STRICTNESS[ask(case)]
    rule = rng.choice(("rm *", "ls *", "git *", "*", "echo*", "src/**"))
    rule = rng.choice((case.tool, f"{case.tool}({rule})", f"{case.tool}({rule}"))
    for name, sign in (("deny", 1), ("ask", 1), ("allow", -1)):
        after = STRICTNESS[ask(case, **{name: [*case.context.get(name, []), rule]})]
        if (after - before) * sign < 0:
            return f"adding {name} rule {rule!r} changed strictness {before} to {after}"
    text = case.tool_input.get("command") if isinstance(case.tool_input, dict) else None
    if (
        case.tool != "Bash"
        or not isinstance(text, str)
        or before == 0
        or case.context["mode"] == "bypassPermissions"
    ):
        return None
    for shape in (
        "( {}\n)",
        "{{ {}\n}}",
        "{}\ntrue",
        "true; {}",
        " {}",
        "\t{} ",
        "{}\n",
        "( ( {}\n) )",
        "{} 2>&1",
    ):
        changed = case._replace(tool_input={"command": shape.format(text)})
        if ask(changed) == "auto" and not text.strip().startswith("#"):
            return f"writing it as {shape!r} opened it"
    return None


def shorten(case: Case, complaint: Callable[[Case], str | None]) -> Case:
    """Cut pieces out of the text while the same complaint class stays; composed texts are already short."""
    field = (
        next((k for k, v in case.tool_input.items() if isinstance(v, str)), None)
        if isinstance(case.tool_input, dict)
        else None
    )
    if field is None or case.accepted != frozenset(STRICTNESS):
        return case
    text, step = case.tool_input[field], 64
    while step:
        for start in range(0, len(text), step):
            smaller = case._replace(tool_input={field: text[:start] + text[start + step :]})
            if complaint(smaller):
                text, case = smaller.tool_input[field], smaller
                break
        else:
            step //= 2
    return case


def run_cases(cases: int, seed: int, *, keep: int = 10) -> Report:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        root, names = Path(scratch).resolve(), ["a"]
        for number in range(cases):
            if number % 500 == 0:
                root = Path(scratch).resolve() / f"tree{number}"
                root.mkdir()
                names = build_tree(rng, root)
            share = rng.random()
            case = (
                make_shell_case(rng)
                if share < 0.5
                else make_arbitrary_case(rng)
                if share < 0.8
                else make_path_case(rng, root, names)
            )
            counts[case.label] += 1
            complaint = check_answer(case)
            if complaint is None and number % 5 == 0 and case.context.get("mode", "default") in MODES:
                counts["relations"] += 1
                complaint = check_relations(rng, case._replace(context={"mode": "default"} | case.context))
            if complaint:
                complaint += list_links(root) if case.label.startswith("path") else ""
                short = shorten(case, check_answer)
                text = (
                    f"{case.label}: {complaint}\n    {short.tool!r} {short.tool_input!r}\n    {short.context}"
                )
                failures.append((len(repr(short.tool_input)), text))
    counts["failed"] = len(failures)
    return Report(counts, [text for _, text in sorted(failures)[:keep]])


# -- cost -----------------------------------------------------------------------------------------


def measure_cost() -> list[tuple[str, float]]:
    """Time of one evaluation divided by that of the bare parse of the same text, for several large texts."""
    rules = [*ALLOW, *(f"Bash(tool{n} *)" for n in range(20))]
    shapes = {
        "1,000 parts": ("; ".join(["ls -la " + "x" * 92] * 1000), DENY),
        "1,000 piped parts": (" | ".join(["grep -n " + "x" * 90 + " f"] * 1000), DENY),
        "1,000 substitutions": (" ".join(["echo"] + ['"$(ls -la ' + "x" * 86 + ')"'] * 1000), DENY),
        "1,000 quoted words": ("echo " + " ".join(["'" + "a;b " * 24 + "'"] * 1000), DENY),
        "one heredoc": ("cat <<'EOF'\n" + ("line of text; rm -rf x\n" * 4300) + "EOF\n", DENY),
        "one word": ("echo " + "a" * 100_000, [*DENY, "Bash(*a*a*a*a*a*b)"]),
        "many lines": ("ls -la x\n" * 11_000, DENY),
    }
    return [(name, ratio_to_parse(text, rules, deny)) for name, (text, deny) in shapes.items()]


def ratio_to_parse(text: str, allow: Sequence[str], deny: Sequence[str]) -> float:
    data, parser = text.encode(), bash_parser()
    parse = min(time_call(lambda: parser.parse(data)) for _ in range(5))
    judge = min(
        time_call(lambda: evaluate_permission("Bash", {"command": text}, allow=allow, deny=deny, cwd="/srv"))
        for _ in range(3)
    )
    return judge / parse


def time_call(call: Callable[[], object]) -> float:
    start = time.process_time()  # what others do on the machine does not count
    call()
    return time.process_time() - start


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Fuzz the permission evaluator.")
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args(argv)
    report = run_cases(chosen.cases, chosen.seed)
    for label, count in sorted(report.counts.items()):
        print(f"{count:>8}  {label}")
    costs = measure_cost()
    for name, ratio in costs:
        print(f"{ratio:>7.1f}x  of the bare parse: {name}")
    for failure in report.failures:
        print(failure)
    return 1 if report.failures or any(ratio > COST_LIMIT for _, ratio in costs) else 0


if __name__ == "__main__":
    sys.exit(main())
