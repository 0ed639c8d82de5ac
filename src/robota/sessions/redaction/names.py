"""Which field, header, variable or option names stand before a secret, and how surely; which fields of a
decoded value are secrets, by their names, their kinds and the fields beside them.

`name_strength` is pure and cached; it reads camelCase, snake_case, kebab-case and glued names alike.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import Json
from robota.sessions.redaction.rules import REDACTED, word_set
from robota.sessions.redaction.values import is_complaint, looks_chosen, looks_issued, repeats_name


class Strength(IntEnum):
    """How much a name says about its value."""

    NONE = 0
    WEAK = 1
    """Only a text that itself looks like a credential is one (`token`: parsers have tokens too)."""
    TEXT = 2
    """Any text is a secret; numbers, lists and objects are not."""
    MANY = 3
    """Texts, lists and objects are secret; a number only counts them (`passwords`)."""
    FULL = 4
    """Whatever stands there is a secret."""


_WORDS = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SENTENCE = lazy_pattern(r"[?!,;\"'<>{}=]|\.\s|\n")
_BLANKS = 4
"""More blanks than that make a sentence, not a name."""
_QUESTIONS = word_set(
    """
    last not
    is has had no have needs need requires require required allow allows with without use uses using
    supports enable enabled disable disabled expects accept accepts skip ignore if valid
    """
)
_VERBS = word_set(
    """
    forgot forgotten reset change enter show hide toggle invalid wrong incorrect missing ask prompt create
    delete describe list revoke put batch start import rotate associate disassociate expired register
    generate verify validate check compare hash type input label placeholder edit set get read update empty
    weak strong expired bad confirm_label recover lost
    """
)
_DOERS = _QUESTIONS | _VERBS
_PASS_OWNERS = word_set(
    """
    db database smtp user mail email mysql pg postgres postgresql redis ftp sftp ssh root admin auth http
    https proxy sudo keystore truststore key login rabbitmq mongo mongodb ldap imap pop vpn wifi wpa router
    become privkey cert enc vault app client server host mqtt nexus sonatype ossrh bind guest system
    basic jenkins docker registry svn git sql mssql oracle account master my kafka amqp es elastic vnc rdp
    remote default
    """
)
_PASSWORDS = word_set(
    "psk storepass keypass userpass dbpass requirepass masterauth passe bindpw rootpw rootbindpw authtok"
)
_COOKIE_OWNERS = ("", *word_set("set session auth x http request response"))
_OTHER_TOKENS = word_set(
    """
    change idempotency starting creation action update unit lifecycle
    page next prev previous continuation cursor pagination resume sync pad eos bos unk sep cls mask stop
    special first last start end begin per max min num n input output prompt completion cached cache current
    lookahead syntax design expected unexpected unknown invalid sub word byte image audio text reasoning
    thinking total newline identifier keyword punctuation operator eof eol close open closing opening
    delimiter cancellation cancel stopping ct erc reward lp nft governance native new old this each every
    other another one single string number comment whitespace indent dedent literal template tag symbol
    color colour spacing theme semantic parse parsed lexer lex sample sampled draft target top best likely
    response request count left right peek consume consumed bad trailing leading extra separator quote
    bracket brace paren
    """
)
_LOGIN_TOKENS = word_set(
    """
    access refresh auth authentication authorization api bearer session id github gh gitlab gl slack bot npm
    personal security oauth oauth2 jwt csrf xsrf registration deploy webhook verification device push user
    service secret hf huggingface hugging vault discord telegram pypi cargo docker hub registry app
    application client private admin root master login sso saml bitbucket jira atlassian notion linear
    sentry fly vercel netlify heroku cloudflare cf digitalocean do azure aws google gcp openai anthropic
    replicate sonar codecov snyk circleci circle ci travis buildkite jenkins grafana influx influxdb
    databricks shopify square stripe twilio facebook fb instagram twitter x whatsapp mastodon pat job runner
    gitea consul nomad kube kubernetes k8s sa account upload publish signing impersonation identity
    federated ado vsts devops ext git mapbox figma asana trello airtable doppler supabase neon turso
    planetscale
    """
)
_SECRET_KEYS = word_set(
    """
    access signing sign encryption encrypt decryption decrypt master auth authentication account shared
    service ssh hmac app application admin subscription preshared psk cipher aes rsa jwt symmetric
    license licence client deploy webhook root role fernet cookie session rails wg wireguard openai
    anthropic claude stripe sendgrid mailgun twilio google gemini azure aws datadog dd algolia pinecone groq
    mistral cohere replicate deepseek openrouter huggingface hf resend sentry supabase cloudflare cf tavily
    serper brave exa firecrawl perplexity together fireworks xai elevenlabs deepgram assemblyai voyage jina
    feed rss consumer functions or fastly salesforce bitfinex binance kraken coinbase braintree razorpay
    mailjet postmark vonage plivo honeycomb rollbar bugsnag amplitude mixpanel segment alchemy infura
    etherscan moralis quicknode shodan virustotal cloudinary imgbb giphy tmdb openweather weather
    hubspot langsmith langchain wandb langfuse helicone newrelic pagerduty opsgenie mailchimp maps
    """
)
_OTHER_KEYS = word_set(
    """
    primary foreign public publishable sort partition cache hash range index row unique routing idempotency
    storage lookup map dict object config setting settings meta ctrl alt shift hot arrow esc escape enter
    delete del tab space return home end insert backspace function fn modifier query state pref preference
    group order ordering site issue project event translation registry h hkey host name answer any some no
    this that each every press pressed bound dedup dedupe deduplication message locale i18n label column
    field json dictionary composite natural surrogate candidate super parent child id param parameter attr
    attribute header env environment var variable option prop property path file section item first last
    next prev lock job queue topic stream bucket s3 blob shard tenant search filter facet sorting compare
    comparison default fallback unknown missing new old current left right up down volume media power mute
    low high music piano musical minor major answer turn card legend map test extra verify verification anon
    gpg pgp
    """
)
_OBJECT_OWNERS = ("existing", "pull", "tls")
"""`existingSecret: app-db`: Kubernetes has objects called secrets, and these are their names."""
_FIXED_SUFFIXES = (
    "password", "passwort", "passwd", "passphrase", "passcode", "secret", "authorization", "credentials",
    "credential", "sshpass",
)  # fmt: skip
_GLUED = ("password", "apikey", "accesstoken", "refreshtoken", "privatekey", "secretkey")
TRAILERS = (
    "confirmation", "production", "plaintext", "secondary", "confirm", "current", "staging", "primary",
    "bedrock", "repeat", "base64", "backup", "string", "again", "value", "base", "prod", "live", "dev", "old",
    "new", "b64",
)  # fmt: skip
"""What may follow a secret's name without changing what it names; the longest come first."""
_PLURALS = word_set(
    "passwords passphrases apikeys accesstokens refreshtokens privatekeys secretkeys clientsecrets cookies"
    " recoverycodes backupcodes apitokens authtokens bearertokens"
)


NEEDS = ("pass", "pw", "psk", "secret", "token", "key", "cred", "cookie", "auth", "bearer")
"""Every name of a secret has one of them in it."""
STEMS = {
    **{stem: "pw" if "pw" in stem else stem for stem in (*NEEDS[:1], *NEEDS[2:], "pwd", "pw")},
    "_pat": "_pat",  # personal access tokens
    "_salt": "key",  # they come together
}
"""What their names end in, each with what a text must hold for it."""


@lru_cache(maxsize=4096)
def name_strength(name: str) -> Strength:
    """How surely the value named `name` is a secret."""
    if name.count(" ") > _BLANKS or _SENTENCE.search(name):
        return Strength.NONE
    if ":" in name.strip(":") and name.islower():  # the scripts of a package are called `db:password`
        return min(Strength.WEAK, name_strength(name.rpartition(":")[2]))
    owner, dot, variable = name.rpartition(".")
    if dot and variable.isupper() and not owner.isupper():  # `process.env.TOKEN`
        return name_strength(variable)
    words = [word.lower() for word in _WORDS.findall(name[-96:].replace("ass_phrase", "assphrase"))]
    numbered = bool(words) and words[-1].isdigit()
    while words and words[-1].isdigit():
        words.pop()
    if not words or (numbered and words[-1] == "auth"):
        return Strength.NONE
    trailed = len(words) > 1 and words[-1] in TRAILERS
    if trailed and (whole := name_strength("_".join(words[:-1]))) > Strength.WEAK:
        return whole
    return _words_strength(words, upper=name.isupper())


def _words_strength(words: list[str], *, upper: bool) -> Strength:
    joined = "".join(words)
    if joined.endswith(_GLUED) and not _DOERS.intersection(words[:-1]):
        return Strength.FULL
    last = words[-1]
    owner = words[-2] if len(words) > 1 else ""
    if last == "secret" and owner in _OBJECT_OWNERS:
        return Strength.NONE
    for suffix in _FIXED_SUFFIXES:
        if last.endswith(suffix):
            return _fixed_strength(last.removesuffix(suffix) or owner, words[0])
    if "public" in words[:-1]:
        return Strength.NONE
    if last.endswith("token"):
        return _token_strength(last.removesuffix("token") or owner, upper=upper)
    if last.endswith("key"):
        return _key_strength(last.removesuffix("key"), words, upper=upper)
    if (last == "auth" and owner and upper) or (last == "pat" and owner in _LOGIN_TOKENS):
        return Strength.WEAK
    return _other_strength(last, owner, words, upper=upper)


def clean_name(name: str, lead: str) -> str:
    """The name without what an escape, a colour or a ruler left before it."""
    if "--" in name.lstrip("-"):
        name = name.rpartition("--")[2]
    if name[:2] in ("-D", "-P"):  # a property given to a JVM or to Gradle
        return f"-{name[2:]}"
    if lead.endswith("\\") and name[:1] in "nrt":
        return name[1:]
    if lead.endswith("%"):
        return name[2:]
    return _COLOUR.sub("", name) if lead.endswith("\x1b[") else name


_COLOUR = lazy_pattern(r"^[0-9;]*m")


def _fixed_strength(owner: str, first: str) -> Strength:
    if owner in _QUESTIONS or first in _QUESTIONS:
        return Strength.NONE
    return Strength.WEAK if owner in _VERBS or first in _VERBS else Strength.FULL


def _token_strength(owner: str, *, upper: bool) -> Strength:
    if owner in ("access", "refresh"):
        return Strength.FULL
    if owner in _OTHER_TOKENS or owner in _QUESTIONS:
        return Strength.NONE
    if upper or owner in _LOGIN_TOKENS:
        return Strength.TEXT
    return Strength.WEAK


def _key_strength(glued: str, words: list[str], *, upper: bool) -> Strength:
    owner = glued or (words[-2] if len(words) > 1 else "")
    if owner in _OTHER_KEYS:
        return Strength.NONE
    if _DOERS.intersection(words[:-1]):
        return Strength.WEAK
    if owner == "access" and len(words) > 2 and words[-3] == "secret":
        return Strength.FULL
    if not owner:
        return Strength.NONE
    if owner in _SECRET_KEYS:
        return Strength.TEXT
    if owner.endswith(("api", "secret", "private")):
        return Strength.FULL
    # An unknown variable of the environment is more likely a key than not; an unknown field is not.
    return Strength.TEXT if upper and not glued else Strength.NONE


def _other_strength(last: str, owner: str, words: list[str], *, upper: bool) -> Strength:
    if last in ("cookie", "setcookie"):
        return Strength.FULL if owner in _COOKIE_OWNERS else Strength.WEAK
    if last in _PASSWORDS or (last.endswith("pwd") and last != "oldpwd"):
        return Strength.TEXT
    if (last == "pw" and owner) or (last == "salt" and upper):
        return Strength.TEXT
    if last.endswith("pass") and (last == "pass" or last.removesuffix("pass") in _PASS_OWNERS):
        return Strength.TEXT if last != "pass" or owner in _PASS_OWNERS else Strength.WEAK
    if last == "pw":
        return Strength.WEAK
    if last == "auth" and owner == "bearer":
        return Strength.TEXT
    if last == "bearer" or (last == "auth" and owner in ("", "http", "proxy", "basic", "bearer", "user")):
        return Strength.WEAK
    if last in _PLURALS or "".join(words[-2:]) in _PLURALS:
        return Strength.MANY
    return Strength.NONE


# --- the fields of a decoded value ---------------------------------------------------------------------

_NAME_FIELDS = ("ParameterKey", "path", "name", "key", "header", "field", "variable", "Name", "Key", "k")
_VALUE_FIELDS = ("ParameterValue", "value", "values", "val", "Value", "v", "defaultValue")
_SCHEMA_TYPES = frozenset(("string", "number", "integer", "object", "array", "boolean", "null"))
_SCHEMA_WORDS = word_set(
    """
    type description title $ref anyOf oneOf allOf not enum const format pattern minLength maxLength minimum
    maximum items properties required default examples example nullable deprecated writeOnly readOnly
    additionalProperties minItems maxItems uniqueItems x-order order
    """
)
PROPERTY_FIELDS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))


def is_schema(value: Json) -> bool:
    """Whether an object describes a value (JSON schema) instead of being one."""
    if not isinstance(value, dict) or not value:
        return False
    if "shape" in value or "tokenUrl" in value:  # a service's description, a flow of OAuth in one
        return True
    if "value" in value:
        return False
    kind = value.get("type")
    if isinstance(kind, str):
        return kind in _SCHEMA_TYPES
    if isinstance(kind, list):
        return bool(kind) and all(isinstance(item, str) and item in _SCHEMA_TYPES for item in kind)
    return all(isinstance(key, str) and key in _SCHEMA_WORDS for key in value)


def hides(strength: Strength, value: Json) -> bool:
    """Whether the value under a name of this strength is to be replaced."""
    if strength is Strength.NONE or value is None or isinstance(value, bool) or value == REDACTED:
        return False
    if isinstance(value, (str, bytes)):
        if strength is Strength.WEAK:
            return isinstance(value, str) and looks_issued(value)
        return len(value) > 0
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return strength >= Strength.MANY and len(value) > 0 and not is_schema(value)
    return strength is Strength.FULL


def is_exempt(name: str, value: Json, context: str) -> bool:
    """Names of fields in a schema, and the working directory that shares a name with passwords."""
    if context in PROPERTY_FIELDS and isinstance(value, dict):
        return True
    lowered = name.lower()
    if lowered.endswith("pwd"):
        return isinstance(value, str) and (value[:1] in "/~." or value[1:3] in (":\\", ":/"))
    if lowered.endswith("string"):  # what is in that JSON is looked at
        return isinstance(value, str) and value.startswith("{")
    if lowered == "id-token":  # a permission of a workflow
        return value in ("read", "write", "none")
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) and is_complaint(item) for item in value)
    if lowered == "cookie":
        return isinstance(value, str) and _VERSION.fullmatch(value) is not None
    return lowered.endswith("credentials") and value in ("include", "omit", "same-origin")


def named_value(source: dict[Json, Json]) -> dict[str, Strength]:
    """The field that holds the value of a `{name: …, value: …}` object, if its name is a secret's."""
    hidden: dict[str, Strength] = {}
    for field in _NAME_FIELDS:
        name = source.get(field)
        if not isinstance(name, str) or len(name) > 96:
            continue
        strength = name_strength(name)
        for held in _VALUE_FIELDS if strength else ():
            value = source.get(held)
            label = isinstance(value, str) and value.isascii() and repeats_name(name, value)  # of a menu
            if held in source and held != field and not label:
                hidden[held] = strength
    for field in ("id", "label"):
        name = source.get(field)
        named = isinstance(name, str) and name_strength(name[-96:]) >= Strength.TEXT
        if named and looks_chosen(str(source.get("value"))):
            hidden["value"] = Strength.TEXT
    return hidden | _fields_of_kinds(source)


def _fields_of_kinds(source: dict[Json, Json]) -> dict[str, Strength]:
    """The secret fields of web keys, logins, wallets and the secrets of Kubernetes."""
    hidden: dict[str, Strength] = {}
    if "kty" in source:
        hidden = dict.fromkeys(("d", "p", "q", "dp", "dq", "qi", "k"), Strength.TEXT)
    if not source.keys().isdisjoint(("user", "username", "login", "email")):
        hidden |= dict.fromkeys(("pass", "pw"), Strength.TEXT)
    if source.get("kind") == "Secret" and "apiVersion" in source:
        hidden |= dict.fromkeys(("data", "stringData"), Strength.FULL)
    for field in ("mnemonic", "seed_phrase"):
        if field in source and str(source[field]).count(" ") >= _WALLET - 1:
            hidden[field] = Strength.TEXT
    return hidden


_VERSION = lazy_pattern(r"[\^~<>=v]*\d+(?:\.\w+)+\S*")
_WALLET = 12
"""Words that open one."""
TELLING_FIELDS = frozenset(
    (*_NAME_FIELDS, "id", "label", "kty", "pass", "pw", "kind", "mnemonic", "seed_phrase")
)
