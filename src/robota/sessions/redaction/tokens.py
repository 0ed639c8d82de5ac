"""Secrets that betray themselves by their shape: tokens of known issuers, JSON web tokens, private keys.

Every pattern is bounded; what follows a match in the same alphabet belongs to the token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.rules import AHEAD, REDACTED, Decision, Rule, RunTail, Tail, follows
from robota.sessions.redaction.values import has_digit

# `hf_transformers_cache_folder` and `sk-ant-your-key` are words; a token has a digit among its letters.
_MIXED = r"(?=[A-Za-z_.-]{0,40}[0-9])(?=[0-9_.-]{0,64}[A-Za-z])"
_VARIED = r"(?=[a-z0-9_+/-]{0,40}[A-Z])(?=[A-Z0-9_+/-]{0,40}[a-z])(?=[A-Za-z_+/-]{0,60}[0-9])"
_LIVELY = r"(?=[a-z_-]{0,40}[0-9A-Z])"
_REAL = r"(?![xX*.]{4}|[A-Za-z0-9_-]{0,24}[xX]{6}|[Yy][Oo][Uu][Rr])"
_HEX = "[0-9a-f]"
_WORD = "[A-Za-z0-9]"
_TOKEN = "[A-Za-z0-9_-]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

# Before one unbroken run of letters and digits.
_WORD_PREFIXES = r"""
    gh[pousr]_ gsk_ xai- pplx- r8_ hf_ api_org_ rnd_ ddapp_ NR(?:AA|II|RA|SP|IQ)- hca[il]k_ ph[xs]_ pn[ub]_
    csk- fw_ d(?:op|oo|or)_v1_ lin_(?:api|oauth)_ sk_(?:live|test|prod)_ rk_(?:live|test|prod)_ whsec_
    shp(?:at|ca|pa|ss|ua)_ sbp_ NRAK- ntn_ secret_ rubygems_ CCIPRJ_ CCIPAT_ bk[up]a_ apify_api_ e2b_ rpa_
    nf[pco]_ vc[pkair]_ PMAK- figu_ fly_ cio_ shippo_(?:live|test)_ hst[rv]_ kagi_
    sgp_(?:local_)? s-s4t2(?:ud|af)- odt_ live_\d{6,12}_
    rdme_ ulp_ sntryu_ sq[upa]_ FLWSECK- FLWSECK_TEST- CLOJARS_ pul- napi_ jina_ ak_ aio_ pat_ p8e-
    tskey-(?:auth|api|client)- alcht_ pga[rw]_ rootly_ cfk_ ddp_ xau_ esecret_ sm_[aps]at_ polar_oat_
    tr_(?:prod|dev|stg)_ dtn_ shptka_ jsr[pd]_ ddo_ hcxik_ slk_ PMAT- sec-c-
    ak_live_ cal_live_ ek_live_ flb_live_ key_live_
"""
# Before a run in which dashes, underscores and dots may stand.
_TOKEN_PREFIXES = r"""
    github_pat_ xox[abceoprs]- tfp_ fio-u- amzn\.mws\. packagist_[a-z]{3}_ bedrock-api-key- xoxe\.xox[bp]-
    xapp- glpat- gldt- glrt- glrtr- glwt- glptt- glft- glsoat- glcbt- glimt- glagent- gloas- glffct-
    dckr_(?:pat|oat)_ figd_ figo[hr]_ glsa_ pscale_(?:tkn|pw|oauth)_ fo1_ nvapi- lsv2_(?:pt|sk)_ tvly- pcsk_
    pypi-AgE sb_secret_ ops_eyJ tskey- ATATT3 ATCTT3 hv[sbr]\. dp\.(?:pt|st|ct|sa|scim|audit)\. ya29\. GOCSPX-
    AQ\.Ab 1//0 AGE-SECRET-KEY-(?:PQ-)?1 sq0(?:atp|csp|idp)- xkeysib- xsmtpsib- CFPAT- HRKU- pat-(?:na|eu)\d-
    cfut_ cfat_ dt0[a-z]01\. AIza dnkey- vercel_blob_rw_ pdl_(?:live|sdbx)_apikey_ mdb_sa_sk_
    signkey-(?:prod|test)- waka_ tgp_v1_ tk-us- wandb_v1_ dbt[cu]_ zpka_ shltm_ SWMTKN-1- vk1\.a\.
    duffel_(?:live|test)_ bb_(?:live|test)_ sk_prod_
"""
_OWN_SHAPES = (  # each with the letters it may begin with
    ("s", rf"sk-ant-{_REAL}{_LIVELY}{_TOKEN}{{8}}"),
    ("s", rf"sk-(?:proj|or-v1|or|svcacct|admin)-{_REAL}{_LIVELY}{_TOKEN}{{10}}"),
    # with nothing but `sk-` in front, the rest must be one long mix of letters and digits
    (
        "s",
        rf"sk-{_REAL}(?=[A-Za-z0-9_-]{{0,60}}?(?=[A-Za-z]{{0,30}}[0-9])(?=[0-9]{{0,30}}[A-Za-z])"
        rf"[A-Za-z0-9]{{12}})[A-Za-z0-9_-]{{16}}",
    ),
    ("n", rf"npm_{_REAL}{_MIXED}{_WORD}{{24}}"),
    ("p", rf"pat{_WORD}{{14}}\.{_HEX}{{32}}"),
    ("r", rf"re_{_WORD}{{8}}_{_WORD}{{16}}"),
    ("sm", rf"(?:sl|mfa)\.(?:u\.)?{_TOKEN}{{60}}"),
    ("ha", r"(?:hf|api_org)_(?=[a-z]{0,29}[A-Z])(?!(?:[a-z]{2,}[A-Z]){3}|[xX]{4})[A-Za-z]{30}"),
    ("A", r"A3-(?!X{4})[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("a", rf"access-(?:sandbox|development|production)-{_UUID}"),
    (
        "k",
        rf"key_{_HEX}{{64}}(?![A-Za-z0-9])|key-(?=[a-z]{{0,20}}[0-9])(?=[0-9]{{0,20}}[a-z])[a-z0-9]{{32}}(?![A-Za-z0-9])",
    ),
    ("s", rf"st\.{_HEX}{{24}}\.{_HEX}{{32}}\.{_HEX}{{32}}"),
    ("p", r"pk_\d{7,9}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    ("ps", rf"[ps]at\.{_TOKEN}{{20,24}}\.{_WORD}{{24}}\.{_WORD}{{20}}"),
    # from before Vault's tokens began with hvs
    (
        "s",
        rf"s\.(?=[a-z0-9]{{0,22}}[A-Z])(?=[A-Za-z]{{0,22}}[0-9])(?=[A-Z0-9]{{0,22}}[a-z]){_WORD}{{24}}(?![A-Za-z0-9_.(-])",
    ),
    (
        "sa",
        r"(?:authress_|sc_|ext_)[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30}",
    ),
    ("sac", rf"(?:sdk|api|ctx7sk)-{_UUID}"),
    ("ap", rf"(?:a[ks]-|pa-)(?=[a-z0-9_-]{{0,20}}[A-Z]){_MIXED}{_WORD}{{22}}"),
    ("s", rf"sk_{_HEX}{{48}}(?![A-Za-z0-9])|sha256~{_REAL}{_TOKEN}{{43}}"),
    ("i", rf"ico-{_REAL}(?=[a-z0-9]{{0,31}}[A-Z]){_WORD}{{32}}(?![A-Za-z0-9])"),
    ("t", rf"t1\.{_TOKEN}{{20,80}}\.{_TOKEN}{{60}}"),
    ("A", r"API-(?=[A-Z]{0,25}[0-9])(?=[0-9]{0,25}[A-Z])[A-Z0-9]{26}(?![A-Za-z0-9_-])"),
    ("v", rf"v1\.0-{_HEX}{{24}}-{_HEX}{{40}}"),
    ("S", rf"SG\.{_TOKEN}{{16,24}}\.{_TOKEN}{{16}}"),
    ("MNO", rf"[MNO]{_TOKEN}{{23,27}}\.{_TOKEN}{{6}}\.{_TOKEN}{{27}}"),
    ("s", rf"sess-{_REAL}{_VARIED}{_WORD}{{40}}(?![A-Za-z0-9_-])|sk-helicone(?:-[a-z0-9]{{7}}){{4}}"),
    ("s", rf"secret-(?:{_VARIED}{_WORD}{{43}}|(?:live|test)-{_VARIED}{_TOKEN}{{35}})"),
    ("fl", rf"fc-{_MIXED}{_HEX}{{32}}(?![A-Za-z0-9_-])|live_{_VARIED}{_WORD}{{30}}(?![A-Za-z0-9_])"),
    ("m", rf"m0-{_VARIED}{_WORD}{{40}}(?![A-Za-z0-9_-])|md-{_VARIED}{_TOKEN}{{22}}(?![A-Za-z0-9_-])"),
    ("c", rf"cio{_VARIED}{_WORD}{{32}}(?![A-Za-z0-9_-])"),
    ("it", rf"ion_{_VARIED}{_WORD}{{42}}|tk_{_MIXED}[a-z0-9]{{29}}(?![A-Za-z0-9_-])"),
    ("y", rf"y0_{_VARIED}{_TOKEN}{{50}}"),
    ("k", r"key/(?<=/with/key/)[A-Za-z0-9_-]{20}"),
    ("n", r"nsec1[02-9ac-hj-np-z]{58}(?![a-z0-9])"),
    ("xyztuv", rf"[xyztuv]prv{_VARIED}{_WORD}{{107}}(?![A-Za-z0-9])"),
    ("o", rf"o\.{_VARIED}{_WORD}{{32}}(?![A-Za-z0-9_.(-])"),
    ("v", rf"v1\.{_HEX}{{40}}(?![A-Za-z0-9_-])"),
    ("K", rf"K10{_HEX}{{64}}::[a-z-]{{2,20}}:{_WORD}{{8}}"),
    ("tk", r"(?:token-[a-z0-9]{5}|kubeconfig-[a-z0-9-]{3,40}):[a-z0-9]{54}(?![A-Za-z0-9])"),
    ("1", rf"1000\.{_HEX}{{32}}\.{_HEX}{{32}}(?![A-Za-z0-9])"),
    ("0", rf"00{_VARIED}{_TOKEN}{{40}}(?![A-Za-z0-9_-])"),
    ("4", rf"4b1d{_VARIED}{_WORD}{{38}}(?![A-Za-z0-9_-])"),
    ("x", rf"(?P<percent>xoxd-{_MIXED}[A-Za-z0-9%_-]{{20}})"),
    # These could stand in the middle of Base64, which has + and / between its letters.
    ("A", r"(?<![A-Za-z0-9+/][+/])A(?:KI|SI|BI|CC|3T[A-Z0-9])A?(?!X{4})(?<=.{4})[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("A", rf"(?<![A-Za-z0-9+/][+/])AKID{_MIXED}{_WORD}{{28,36}}(?![A-Za-z0-9+/])"),
    ("Sd", rf"(?<![A-Za-z0-9+/][+/])(?:SK|dapi){_HEX}{{32}}(?![A-Za-z0-9])"),
    ("AEI", rf"(?<![A-Za-z0-9+/][+/])(?:EAA[A-Z]|IG(?:QV|AA)|EZ[AT]K|ATBB|AKCp[0-9]){_MIXED}{_WORD}{{28}}"),
    ("E", rf"(?<![A-Za-z0-9+/][+/])EAAA[A-Z](?=[A-Za-z0-9]{{0,58}}[_-]){_TOKEN}{{59}}(?![A-Za-z0-9_+/-])"),
    ("c", rf"(?<![A-Za-z0-9+/][+/])cmVmdGtuOj{_WORD}{{40}}"),
    ("A", r"A{21}[A-Za-z0-9]{6,60}%[23][0-9A-F][A-Za-z0-9%]{20}"),
    ("A", rf"(?<![A-Za-z0-9+/][+/])AQVN{_MIXED}{_TOKEN}{{35,38}}(?![A-Za-z0-9_+/-])"),
    ("L", rf"(?<![A-Za-z0-9+/][+/])LTAI{_MIXED}{_WORD}{{12,26}}(?![A-Za-z0-9+/])"),
    ("A", rf"(?<![A-Za-z0-9+/][+/])ALTAK{_VARIED}{_WORD}{{21}}(?![A-Za-z0-9+/])"),
    ("B", rf"(?<![A-Za-z0-9+/][+/])BSA{_VARIED}{_TOKEN}{{28}}(?![A-Za-z0-9_+/=-])"),
    ("K", rf"(?<![A-Za-z0-9+/][+/])K00\d{_VARIED}[A-Za-z0-9+/]{{27}}(?![A-Za-z0-9+/=])"),
    ("s", rf"(?<![A-Za-z0-9+/][+/])sk{_VARIED}{_WORD}{{120}}"),
    ("o", r"(?<![A-Za-z0-9+/][+/])oy2[a-z0-9]{43}(?![A-Za-z0-9+/])"),
    ("G", rf"(?<![A-Za-z0-9+/][+/])GR1348941(?![xX]{{4}}){_TOKEN}{{20}}(?![A-Za-z0-9+/])"),
)
_ANY_START = (
    rf"{_HEX}{{32}}-us\d{{1,2}}(?![A-Za-z0-9])|[A-Za-z0-9_.]{{3}}[0-9]Q~[A-Za-z0-9_.~-]{{31,34}}"
    rf"|(?![xX]{{4}}){_WORD}{{14}}\.atlasv1\.{_TOKEN}{{20}}|\d{{8,10}}:AA[A-Za-z0-9_-]{{31}}"
    rf"|{_WORD}{{76}}AZDO{_WORD}{{4}}(?![A-Za-z0-9])|{_WORD}{{52}}JQQJ9{_WORD}{{27}}(?![A-Za-z0-9])"
    # keys of Azure, by the sign of their service
    rf"|(?=[A-Za-z0-9+/_-]{{39}})(?:{_WORD}{{42}}AzSe[A-D]{_WORD}{{5}}(?![A-Za-z0-9])"
    r"|[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{5}[AQgw]=="
    r"|(?<![A-Za-z0-9+/][+/])(?:[A-Za-z0-9+/]{76}(?:APIM|ACDb|\+(?:ABa|AMC|ASt))[A-Za-z0-9+/]{5}[AQgw]=="
    r"|[A-Za-z0-9+/]{33}(?:AIoT|AzCa|\+(?:ASb|AEh|ARm))[A-P][A-Za-z0-9+/]{5}="
    r"|[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9+/]{5}(?![A-Za-z0-9+/=])))"
    rf"|{_WORD}{{36}}NRAL(?![A-Za-z0-9])|00D{_WORD}{{12}}![A-Za-z0-9._]{{60}}"
    rf"|\d{{15,16}}\|[A-Za-z0-9_-]{{27}}(?![A-Za-z0-9_-])|{_WORD}{{6}}_{_WORD}{{29}}_mmk(?![A-Za-z0-9])"
    # what stands behind the identifier that it belongs to, in a call or a path
    rf"|{_HEX}{{32}}(?:(?<=AC{_HEX}{{32}}[\"'], [\"']{_HEX}{{32}})|(?<=AC{_HEX}{{32}}:{_HEX}{{32}}))"
    rf"|[a-z]{{2}}-(?<=/t/[a-z]{{2}}-){_HEX}{{8}}-{_HEX}{{4}}-{_TOKEN}{{22}}"
)
_BASE64_SHAPES = (
    ("f", "fm[12][ar]?_[A-Za-z0-9+/=_-]{16}"),
    ("F", "FlyV1 fm[12][ar]?_[A-Za-z0-9+/=_-]{16}"),
    ("s", "sntrys_[A-Za-z0-9+/=_-]{16}"),
    ("g", "glc_(?!1{8}|[xX]{4})[A-Za-z0-9+/=_-]{16}"),
    # {"auths":  {"a":"  {"k":"  tok:  and a key of Bedrock
    ("B", "BBDC-[A-Za-z0-9+/]{40}"),
    ("e", "(?:eyJhdXRocyI6|eyJhIjoi|eyJrIjoi)(?=[A-Za-z+/]{0,60}[0-9])[A-Za-z0-9+/]{44}"),
    ("d", "dG9rO(?=[A-Za-z+/]{0,40}[0-9])[A-Za-z0-9+/]{44}"),
    ("A", "ABSK[A-Za-z0-9+/]{60}"),
    # sessions of AWS
    ("IF", "(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9+/]{60}"),
    ("we", rf"(?:whsec|essu)_{_VARIED}[A-Za-z0-9+/]{{24}}"),
    # a JSON web token that was encoded once more
    ("Z", "ZXlK(?:aGJHY2lP|MGVYQWlP|cmFXUWlP)[A-Za-z0-9+/]{40}"),
    (
        "L",
        "LS0tLS1CRUdJTi(?:BQUklWQVRF|BQR1AgUFJJVkFURS|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE"
        "|BFTkNSWVBURUQgUFJJVkFURS|BEU0EgUFJJVkFURS)",
    ),
)
# So telling that they are found inside other words too.
_TELLING = (
    r"gh[pousr]_(?![xX]{6})[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{30}|sk-ant-api\d\d-[A-Za-z0-9_-]{20}"
    r"|sk-proj-[A-Za-z0-9_-]{30}|glpat-(?![xX]{4})[A-Za-z0-9_-]{18}|xox[bp]-\d{8}[A-Za-z0-9-]{16}|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"
    r"|AKIA(?!X{4})[A-Z0-9]{16}(?![A-Za-z0-9])|eyJ(?:hbGciOi|0eXAiOi|raWQiOi)[A-Za-z0-9_-]{8,140}\.[A-Za-z0-9_-]{10}"
)


def _issued() -> dict[str, str]:
    """The shapes of tokens by their first letter."""
    shapes: dict[str, list[str]] = {}
    for prefixes, rest in (
        (_WORD_PREFIXES, rf"{_REAL}{_MIXED}{_WORD}{{16}}"),
        (_TOKEN_PREFIXES, rf"{_REAL}{_MIXED}[A-Za-z0-9_.-]{{16}}"),
    ):
        letters: dict[str, list[str]] = {}
        for prefix in prefixes.split():
            letters.setdefault(prefix[0], []).append(prefix)
        for letter, group in letters.items():
            shapes.setdefault(letter, []).append(f"(?:{'|'.join(group)}){rest}")
    for first, shape in _OWN_SHAPES:
        for letter in first:
            shapes.setdefault(letter, []).append(shape)
    encoded: dict[str, list[str]] = {}
    for letters_of, shape in _BASE64_SHAPES:
        for letter in letters_of:
            encoded.setdefault(letter, []).append(shape)
    for letter, group in encoded.items():
        shapes.setdefault(letter, []).append(f"(?P<base64>{'|'.join(group)})")
    return {letter: "|".join(group) for letter, group in shapes.items()}


class WordPattern:
    """Finds what words begin with. There is a pattern for each first letter, compiled when a word has it."""

    __slots__ = ("_any", "_patterns")

    def __init__(self, sources: Mapping[str, str], any_letter: str = "(?!)") -> None:
        self._patterns = {letter: lazy_pattern(source) for letter, source in sources.items()}
        self._any = lazy_pattern(any_letter)

    def search(self, text: str, position: int, stop: int, /) -> re.Match[str] | None:
        for word in _WORDS.finditer(text, position, stop):
            start = word.start()
            pattern = self._patterns.get(text[start])
            if found := (pattern and pattern.match(text, start)) or self._any.match(text, start):
                return found
        return None


# A word is not looked into. It may begin after an escape (\n, %20, \u0026) of the text around it, whose
# letters are then no part of it. That it begins with a letter comes first: so a search skips the rest fast.
_WORDS = lazy_pattern(
    r"[A-Za-z0-9](?:(?<![A-Za-z0-9_-].)(?<!,sha256=.)(?<!\\[nrtbf])(?<!\\u(?=00[0-9a-fA-F]{2}))"
    r"(?<!%[0-9A-Fa-f](?=[0-9A-Fa-f]))(?<!/b(?=ot\d))|(?<=[^A-Za-z0-9_-]_.)|(?<=\A_.)|(?<=\\[nrtbf].)"
    r"|(?<=\\u00[0-9a-fA-F]{2}.)|(?<=%[0-9A-Fa-f]{2}.)|(?<=/bot\d))[A-Za-z0-9_-]*+"
)


def find_runs(text: str) -> list[tuple[int, int]]:
    """Where an issued token could begin: in a long run without blanks and punctuation, or near it.

    Runs that are near to each other are one.
    """
    classes = text.encode("latin-1", "replace").translate(_RUN_TABLE)
    runs: list[tuple[int, int]] = []
    position = classes.find(_RUN)
    while position >= 0:
        end = classes.find(b" ", position)
        end = len(classes) if end < 0 else end
        if _LIKE_TOKEN.match(text, position, end):
            start = max(0, position - _MARGIN)
            if runs and start <= runs[-1][1]:
                runs[-1] = (runs[-1][0], end + _MARGIN)
            else:
                runs.append((start, end + _MARGIN))
        position = classes.find(_RUN, end)
    return runs


SHORTEST_RUN = 16
_RUN = b"a" * SHORTEST_RUN
_RUN_TABLE = bytes(97 if chr(code).isalnum() or code in b"_-." else 32 for code in range(256))
_MARGIN = 24
"""`/bot1234567890:` comes before a run, and Base64 has short runs beside its long ones."""
_LIKE_TOKEN = lazy_pattern(
    r"(?=[^A-Z0-9]*+[A-Z0-9])(?=[^A-Zg-z_]*+[A-Zg-z_]|fc-)(?!(?:[A-Z]?[a-z]{2,}+)++\Z)"
)
"""No word, no hash, and no camelCase name."""


_HOOKS = (
    r"(?:s\.slack\.com/(?:services|workflows|triggers)/(?=T[A-Za-z0-9_/]{19})"
    r"|s/(?=\d{5,25}/[A-Za-z0-9_-]{16}|[A-Za-z0-9]{17,24}/(?=[A-Za-z]{0,29}[0-9])[A-Za-z0-9]{30}|(?=[a-z]{0,25}[0-9])[a-z0-9]{26}(?![A-Za-z0-9_/.-]))"
    r"|(?:b2|\.[a-z]{2}\d\.make\.com)?/(?=[A-Za-z0-9@/-]{20})|s/catch/(?=\d{4,10}/[a-z0-9]{5})"
    r"|/send\?key=(?=[0-9a-f-]{36}))"
)
_HOOK_HOST = (
    r"hooks\.slack\.com/\w+/\Z|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\Z|/hooks/\Z"
    r"|\.webhook\.office\.com/webhookb2/\Z|\boutlook\.office(?:365)?\.com/webhook/\Z|hooks\.zapier\.com/hooks/catch/\Z"
    r"|/open-apis/bot/(?:v2/)?hook/\Z|//hook\.[a-z]{2}\d\.make\.com/\Z|/webhook/send\?key=\Z"
)
_hook = follows(
    r"(?P<secret>[A-Za-z0-9_/@-]+)", RunTail(r"[A-Za-z0-9_/@-]"), looks=has_digit, after=_HOOK_HOST
)
_TOKEN_TAIL = RunTail(r"[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9_-]{6}|[a-z0-9]{2}\.[a-z0-9]{9})", look=13)
_JWT = (
    r"(?:(?<![A-Za-z0-9_+/-]eyJ)|(?<=\\[nrtbf]eyJ)|(?<=%[0-9A-Fa-f]{2}eyJ))"
    r"(?:(?:hbGci|0eXAi|raWQi|lbmMi|jdHki|6aXAi|qa3Ui|4NWMi|4NXQi|hcHUi|lcGsi)[A-Za-z0-9_-]{8}"
    rf"|[A-Za-z0-9_-]{{8,{AHEAD - 20}}}\.[A-Za-z0-9_-]{{6}})"
)


_web_key = follows(r"\s*\"(?P<secret>[A-Za-z0-9_-]+)", RunTail(r"[A-Za-z0-9_-]"))
"""The private part of a JSON Web Key."""

_words = follows(
    r"(?!test test test)(?P<secret>(?:[a-z]{3,8} ){11}[a-z]{3,8})", RunTail(r"[a-z]| (?=[a-z])", look=2)
)
"""The words of a wallet."""

TOKENS: tuple[Rule, ...] = (
    Rule("hook", _HOOKS, _hook, needs=("/",)),
    Rule('"d":', r"(?=\s{0,4}\"[A-Za-z0-9_-]{40})", _web_key),
    Rule(
        "nemonic",
        r"\w{0,12}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?=(?:[a-z]{3,8} ){11})",
        _words,
        folded=True,
    ),
    Rule(
        "seed",
        r"[ _-]?phrase[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?=(?:[a-z]{3,8} ){11})",
        _words,
        folded=True,
    ),
    Rule("access_token$", r"[a-z]{3,12}\$[a-z0-9]{16}\$[0-9a-f]{32}", _TOKEN_TAIL, needs=("$",)),
)
_TAILS = {
    "base64": RunTail(r"[A-Za-z0-9+/=_,-]"),
    "percent": RunTail(r"[A-Za-z0-9%_-]"),  # it comes from a cookie
}
RUN_TOKENS: tuple[Rule, ...] = (
    Rule("", _TELLING, RunTail(r"[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9_-])", look=2)),
    Rule("", WordPattern(_issued(), _ANY_START), _TOKEN_TAIL, tails=_TAILS),
    Rule("eyJ", _JWT, RunTail(r"[A-Za-z0-9_.=-]")),
)
"""The rules that are tried only around the long runs of a text."""

# --- private keys in PEM, PGP and PuTTY form: with real or escaped line ends, in one line, or cut off ---

_GAP = (
    r"(?:[ \t]{1,24}|(?:\n|\\+n)[>+ \t]{0,12}\d{1,5}(?:[\t:|→]|\\+t)"
    r"|(?:\n|\\+n)(?:[\w./-]{1,40}:\d{1,5}:|[\w.-]{1,24} {1,4}\| |[ \t]{0,12}(?:///?|--|%)[ \t]"
    r"|\d{4}-\d\d-\d\d[^\n]{8,30}?: )|\n-(?=[A-Za-z0-9+/=]{4})|\\+[nrt\"']|[\s\"'+,;#>|*`]|\\+u000[aAdD]"
    r"|%0[aAdD]|%20|&#(?:x[0-9a-fA-F]{1,2}|1[03]);|<br\s?/?>)"
)
_RUN_OF_KEY = "[A-Za-z0-9+/=]"
_END = r"-{4,6} ?END [A-Za-z0-9 ]{0,40}-{4,5}"
_HEAD = (
    r"[ -]BEGIN (?:[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4,5}"
    rf"{_GAP}{{0,12}}+(?:[A-Z][A-Za-z-]{{2,20}}: (?:[^\n\\]|\\+[\"']){{0,70}}{_GAP}{{1,6}}+){{0,3}}"
    rf"{_RUN_OF_KEY}{{16}}"
)
_MORE = lazy_pattern(rf"{_RUN_OF_KEY}*+")
_LINE = lazy_pattern(
    rf"{_GAP}{{1,24}}+(?:{_RUN_OF_KEY}{{16}}|{_RUN_OF_KEY}{{0,15}}+{_GAP}{{0,24}}+{_END}"
    rf"|{_RUN_OF_KEY}{{1,15}}+(?={_GAP}{{0,24}}+\Z))"
)
_LAST = lazy_pattern(_END)
_FIRST_LINE = lazy_pattern(rf"({_GAP}{{1,6}}+){_RUN_OF_KEY}{{16}}")
_LOOK = 150
"""What must be seen to know whether a line goes on with the key."""


class KeyTail(Tail):
    """The lines of a private key, up to its END line or, if it was cut off, its last line."""

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        while True:
            run = _MORE.match(text, position)
            position = run.end() if run else position
            if not final and len(text) - position < _LOOK:
                return position, True
            if end := _LAST.match(text, position):
                return end.end(), False
            line = _LINE.match(text[position : position + _LOOK])
            if line is None:
                return position, False
            position += line.end()
            if text[position - 1] == "-":
                return position, False


def _key_after(before: str, ahead: str, _ends: bool) -> Decision | None:
    """The lines of a PuTTY key; the secret part of a private calendar's address"""
    if before.endswith("/private-"):
        return 0, 32, None, REDACTED
    lines = _FIRST_LINE.match(ahead)
    return (lines.end(1), lines.end(), KeyTail(), REDACTED) if lines else None


PRIVATE_KEYS: tuple[Rule, ...] = (
    Rule("----", _HEAD, KeyTail(), needs=("key",)),
    Rule("rivate-", r"(?:Lines: \d{1,4}|(?<=/private-)(?=[0-9a-f]{32}))", _key_after),
)
