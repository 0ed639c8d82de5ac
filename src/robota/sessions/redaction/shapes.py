"""Secrets that betray themselves by their shape: tokens of known issuers and JSON web tokens.

Every row is bounded; what follows a match in the same alphabet belongs to the token.
"""

from __future__ import annotations

import re

from robota.sessions.redaction.scan import AHEAD, REDACTED, Decision, Rule, RunTail

# Not inside a longer word, unless the word's end is an escape (\n, %20, \u0026) of the text around it.
EDGE = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=[^A-Za-z0-9_-]_)|(?<=\A_)|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\\u00[0-9a-fA-F]{2})|(?<=/bot))"
)
# Goes from word to word without looking inside them.
_WORDS = (
    r"(?s)(?:(?!%s)(?:\\(?:[nrtbf]|u00[0-9a-fA-F]{2})|%%[0-9A-Fa-f]{2}"
    r"|/bot(?=\d)|[A-Za-z0-9][A-Za-z0-9_-]*+|[^A-Za-z0-9\\%%/_]++|.))*+"
)
# `hf_transformers_cache_folder` and `sk-ant-your-key` are words; a token has a digit among its letters.
_MIXED = r"(?=[A-Za-z_.-]{0,40}[0-9])(?=[0-9_.-]{0,64}[A-Za-z])"
_LIVELY = r"(?=[a-z_-]{0,40}[0-9A-Z])"
_REAL = r"(?![xX*.]{4}|[A-Za-z0-9_-]{0,24}[xX]{6}|[Yy][Oo][Uu][Rr])"
_HEX = "[0-9a-f]"
_WORD = "[A-Za-z0-9]"
_TOKEN = "[A-Za-z0-9_-]"

# Prefixes before one unbroken run of letters and digits.
_WORD_PREFIXES = [
    "gh[pousr]_",
    "gsk_",
    "xai-",
    "pplx-",
    "r8_",
    "hf_",
    "api_org_",
    "rnd_",
    "ddapp_",
    "NR(?:II|RA|SP|IQ)-",
    "hca[il]k_",
    "ph[xs]_",
    "pn[ub]_",
    "csk-",
    "fw_",
    "tgp_v1_",
    "d(?:op|oo|or)_v1_",
    "lin_(?:api|oauth)_",
    "(?:sk|rk)_(?:live|test|prod)_",
    "whsec_",
    "shp(?:at|ca|pa|ss|ua)_",
    "sbp_",
    "NRAK-",
    "ntn_",
    "secret_",
    "rubygems_",
    "CCIPRJ_",
    "CCIPAT_",
    "bk[up]a_",
    "apify_api_",
    "e2b_",
    "rpa_",
    "nf[pco]_",
    "vc[pkair]_",
    "PMAK-",
    "glc_",
    "figu_",
    "fly_",
    "cio_",
    "duffel_(?:live|test)_",
    "shippo_(?:live|test)_",
    "hst[rv]_",
    "sgp_",
    "kagi_",
    "rdme_",
    "ulp_",
    "sntryu_",
    "sq[upa]_",
    "FLWSECK-",
    "FLWSECK_TEST-",
    "CLOJARS_",
    "pul-",
    "napi_",
    "jina_",
    "ak_",
    "aio_",
    "pat_",
    "tskey-(?:auth|api|client)-",
]
# Prefixes before a run in which dashes, underscores and dots may stand.
_TOKEN_PREFIXES = [
    r"github_pat_",
    r"xox[abdeoprs]-",
    r"tfp_",
    r"fio-u-",
    r"amzn\.mws\.",
    r"packagist_[a-z]{3}_",
    r"bedrock-api-key-",
    r"xoxe\.xox[bp]-",
    r"xapp-",
    r"glpat-",
    r"gldt-",
    r"glrt-",
    r"glptt-",
    r"glft-",
    r"glsoat-",
    r"glcbt-",
    r"glimt-",
    r"glagent-",
    r"gloas-",
    r"glffct-",
    r"dckr_(?:pat|oat)_",
    r"figd_",
    r"figo[hr]_",
    r"glsa_",
    r"pscale_(?:tkn|pw|oauth)_",
    r"fo1_",
    r"nvapi-",
    r"lsv2_(?:pt|sk)_",
    r"tvly-",
    r"pcsk_",
    r"pypi-AgE",
    r"sb_secret_",
    r"ops_eyJ",
    r"tskey-",
    r"ATATT3",
    r"ATCTT3",
    r"hv[sbr]\.",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.",
    r"ya29\.",
    r"GOCSPX-",
    r"AQ\.Ab",
    r"1//0",
    r"AGE-SECRET-KEY-1",
    r"sq0(?:atp|csp|idp)-",
    r"x(?:key|smtp)sib-",
    r"CFPAT-",
    r"HRKU-",
    r"pat-(?:na|eu)\d-",
    r"cfut_",
    r"cfat_",
    r"dt0[a-z]01\.",
    r"AIza",
]
_EXACT = (
    rf"{_HEX}{{32}}-us\d{{1,2}}(?![A-Za-z0-9])",
    rf"pat{_WORD}{{14}}\.{_HEX}{{32}}",
    rf"re_{_WORD}{{8}}_{_WORD}{{16}}",
    rf"(?:sl|mfa)\.(?:u\.)?{_TOKEN}{{60}}",
    r"(?:hf|api_org)_(?=[a-z]{0,29}[A-Z])[A-Za-z]{30}",
    rf"access-(?:sandbox|development|production)-{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    rf"key_{_HEX}{{64}}(?![A-Za-z0-9])",
    rf"st\.{_HEX}{{24}}\.{_HEX}{{32}}\.{_HEX}{{32}}",
    r"pk_\d{7,9}_[A-Z0-9]{32}(?![A-Za-z0-9])",
    r"[A-Za-z0-9_.]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}",
    rf"v1\.0-{_HEX}{{24}}-{_HEX}{{40}}",
    rf"key-{_HEX}{{32}}(?![A-Za-z0-9])",
    rf"SG\.{_TOKEN}{{16,24}}\.{_TOKEN}{{16}}",
    rf"[MNO]{_TOKEN}{{23,27}}\.{_TOKEN}{{6}}\.{_TOKEN}{{27}}",
    rf"{_WORD}{{14}}\.atlasv1\.{_TOKEN}{{20}}",
    r"\d{8,10}:AA[A-Za-z0-9_-]{31}",
    # These could stand in the middle of Base64, which has + and / between its letters.
    r"(?<![A-Za-z0-9+/][+/])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    rf"(?<![A-Za-z0-9+/][+/])(?:SK|dapi){_HEX}{{32}}(?![A-Za-z0-9])",
    rf"(?<![A-Za-z0-9+/][+/])(?:EAA[A-Z]|EZ[AT]K|ATBB|AKCp[0-9]){_MIXED}{_WORD}{{28}}",
    rf"(?<![A-Za-z0-9+/][+/])EAAA[A-Z](?=[A-Za-z0-9]{{0,58}}[_-]){_TOKEN}{{59}}(?![A-Za-z0-9_+/-])",
    rf"(?<![A-Za-z0-9+/][+/])cmVmdGtuOj{_WORD}{{40}}",
    r"A{21}[A-Za-z0-9]{6,60}%[23][0-9A-F][A-Za-z0-9%]{20}",
    rf"(?<![A-Za-z0-9+/][+/])(?:LTAI{_MIXED}{_WORD}{{12,26}}|oy2[a-z0-9]{{43}}|GR1348941{_TOKEN}{{20}})(?![A-Za-z0-9+/])",
)
_HOOKS = (
    r"hook(?:s\.slack\.com/(?:services|workflows|triggers)/(?=T[A-Za-z0-9_/]{19})"
    r"|s/(?=\d{5,25}/[A-Za-z0-9_-]{16}|(?=[a-z]{0,25}[0-9])[a-z0-9]{26}(?![A-Za-z0-9_/.-]))"
    r"|b2/(?=[A-Za-z0-9@/-]{20})|s/catch/(?=\d{4,10}/[a-z0-9]{5}))"
)
_HOOK_HOST = re.compile(
    r"hooks\.slack\.com/\w+/\Z|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\Z|/hooks/\Z"
    r"|\.webhook\.office\.com/webhookb2/\Z|hooks\.zapier\.com/hooks/catch/\Z"
)

_BARE_KEY = (
    rf"sk-{_REAL}(?=[A-Za-z0-9_-]{{0,60}}?(?=[A-Za-z]{{0,30}}[0-9])(?=[0-9]{{0,30}}[A-Za-z])"
    rf"[A-Za-z0-9]{{12}})[A-Za-z0-9_-]{{16}}"
)
"""Keys with nothing but `sk-` in front: the rest must be one long mix of letters and digits."""
_JWT = (
    r"(?:(?:hbGci|0eXAi|raWQi|lbmMi|jdHki|6aXAi|qa3Ui|4NWMi|4NXQi|hcHUi|lcGsi)[A-Za-z0-9_-]{8}"
    rf"|[A-Za-z0-9_-]{{8,{AHEAD - 20}}}\.[A-Za-z0-9_-]{{6}})"
)


def _by_letter(prefixes: list[str]) -> str:
    """The prefixes as one pattern in which a letter decides early."""
    groups: dict[str, list[str]] = {}
    for prefix in prefixes:
        literal = prefix[0] if prefix[0].isalnum() else ""
        groups.setdefault(literal, []).append(prefix[len(literal) :])
    return "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in groups.items())


_SOURCE = "|".join(
    (
        rf"sk-(?:ant-{_REAL}{_LIVELY}{_TOKEN}{{8}}|(?:proj|or-v1|or|svcacct|admin)-{_REAL}{_LIVELY}{_TOKEN}{{10}})",
        _BARE_KEY,
        rf"(?:{_by_letter(_WORD_PREFIXES)}){_REAL}{_MIXED}{_WORD}{{16}}",
        rf"npm_{_REAL}{_MIXED}{_WORD}{{24}}",
        rf"(?:{_by_letter(_TOKEN_PREFIXES)}){_REAL}{_MIXED}[A-Za-z0-9_.-]{{16}}",
        *_EXACT,
    )
)


def _hook(before: str, ahead: str, _ends: bool) -> Decision | None:
    found = _HOOK.match(ahead) if _HOOK_HOST.search(before[-80:]) else None
    return (0, found.end(), _HOOK_TAIL, REDACTED) if found else None


_HOOK = re.compile(r"[A-Za-z0-9_/@-]+")
_HOOK_TAIL = RunTail(r"[A-Za-z0-9_/@-]")
_BASE64_TAIL = RunTail(r"[A-Za-z0-9+/=_,-]")
_TOKEN_TAIL = RunTail(r"[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9_-]{6})", look=7)
_PARTS_TAIL = RunTail(r"[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9_-])", look=2)
_DOTTED_TAIL = RunTail(r"[A-Za-z0-9_.=-]")


_ISSUED = f"(?=[A-Za-z0-9]){EDGE}(?:{_SOURCE})"
_SLASHED = (
    rf"(?=[defgsAFL]){EDGE}(?:(?:(?:FlyV1 )?fm[12][ar]?_|sntrys_|glc_)[A-Za-z0-9+/=_-]{{16}}"
    # {"auths":  {"a":"  tok:  and a key of Bedrock, in Base64
    r"|(?:eyJhdXRocyI6|eyJhIjoi|dG9rO)(?=[A-Za-z+/]{0,40}[0-9])[A-Za-z0-9+/]{44}|ABSK[A-Za-z0-9+/]{60}"
    r"|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE"
    r"|BFTkNSWVBURUQgUFJJVkFURS|BEU0EgUFJJVkFURS))"
)

# So telling that they are found inside other words too; the first letters spare most places a closer look.
_TELLING = (
    r"(?:gh[pousr]_(?![xX]{6})[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{30}|sk-ant-api\d\d-[A-Za-z0-9_-]{20}"
    r"|sk-proj-[A-Za-z0-9_-]{30}|glpat-[A-Za-z0-9_-]{18}|xox[bp]-\d{8}[A-Za-z0-9-]{16}|AIza[A-Za-z0-9_-]{35}"
    r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9])|eyJ(?:hbGciOi|0eXAiOi|raWQiOi)[A-Za-z0-9_-]{8,140}\.[A-Za-z0-9_-]{10})"
)

SHAPES: tuple[Rule, ...] = (
    Rule((), f"(?s)(?:[^gsxAe]++|(?!{_TELLING}).)*+(?P<secret>{_TELLING})", _PARTS_TAIL, in_runs=True),
    Rule((), f"{_WORDS % _ISSUED}(?P<secret>{_ISSUED})", _TOKEN_TAIL, in_runs=True),
    Rule((), f"{_WORDS % _SLASHED}(?P<secret>{_SLASHED})", _BASE64_TAIL, in_runs=True),
    Rule(("hook",), _HOOKS, decide=_hook),
    Rule(("access_token$",), r"access_token\$[a-z]{3,12}\$[a-z0-9]{16}\$[0-9a-f]{32}", _TOKEN_TAIL),
    Rule(
        ("eyj",),
        rf"eyJ(?:(?<![A-Za-z0-9_+/-]eyJ)|(?<=\\[nrtbf]eyJ)|(?<=%[0-9A-Fa-f]{{2}}eyJ)){_JWT}",
        _DOTTED_TAIL,
    ),
)
