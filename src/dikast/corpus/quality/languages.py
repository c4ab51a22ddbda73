"""Language identification by script and by the most common words; accurate enough for filters."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_SAMPLE = 4000  # characters examined
_LEAST_LETTERS = 20
_LEAST_WORDS = 4  # function words needed to identify a language
_AHEAD = 1.5  # how many times more function words than of the expected language

_NAMES = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "fa": "persian", "fi": "finnish", "fr": "french", "he": "hebrew", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "it": "italian", "ja": "japanese", "ko": "korean", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish",
    "ta": "tamil", "te": "telugu", "th": "thai", "tr": "turkish", "uk": "ukrainian", "vi": "vietnamese",
    "zh": "chinese",
}  # fmt: skip
KNOWN = tuple(_NAMES.values())
_OWN = {
    "deutsch": "de", "español": "es", "français": "fr", "italiano": "it", "português": "pt", "nederlands": "nl",
    "svenska": "sv", "dansk": "da", "norsk": "no", "suomi": "fi", "polski": "pl", "čeština": "cs", "türkçe": "tr",
    "русский": "ru", "українська": "uk", "日本語": "ja", "中文": "zh", "한국어": "ko", "العربية": "ar", "हिन्दी": "hi",
    "ελληνικά": "el", "עברית": "he", "ไทย": "th", "magyar": "hu", "română": "ro", "mandarin": "zh", "farsi": "fa",
}  # fmt: skip
_SCRIPTS = {  # scripts that identify a language by themselves
    "GREEK": "el", "HEBREW": "he", "THAI": "th", "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "DEVANAGARI": "hi",
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja",
}  # fmt: skip
_OF_SCRIPT = {"el": "GREEK", "he": "HEBREW", "th": "THAI", "bn": "BENGALI", "ta": "TAMIL", "te": "TELUGU",
              "hi": "DEVANAGARI", "ko": "HANGUL", "ja": "JAPANESE", "zh": "CJK", "ar": "ARABIC", "fa": "ARABIC",
              "ru": "CYRILLIC", "uk": "CYRILLIC", "bg": "CYRILLIC"}  # fmt: skip
_COMMON = {
    "en": "the of and to in is that it was for with are this not as be on by which but from at have has they you its"
    " their or an does would can when what how your there",
    "de": "der die das und ist nicht ein eine zu den mit sich auf für dem des von wird auch als es an werden aus hat"
    " dass sie nach bei einer um am sind noch wie einem über kann oder aber wenn nur",
    "fr": "le la les des et est une dans que pour qui sur pas avec au ce il elle sont du plus par ne se cette aux ou"
    " mais être comme ses nous vous leur deux été fait même",
    "es": "el la los las de y que en un una es por con para del se no al lo como más su sus pero este esta son está"
    " también muy ha sin sobre entre hay fue porque cuando",
    "it": "il lo la gli le di che e un una è per con non si del della nel sono più come dei anche ma questo questa al"
    " alla da delle su ha loro essere dal molto tutti",
    "pt": "o os as de e que em um uma é por com para do da não se no na mais como dos das ao mas seu sua são está"
    " também muito foi pelo pela ou quando isso nos você",
    "nl": "de het een en van is in dat op te met voor niet zijn aan er die ook als door bij naar om uit maar worden"
    " wordt dit heeft meer over nog wel deze kan tot je we",
    "sv": "och att det som en är på av för med den till inte har de ett om var jag så men från kan eller vid när också"
    " sig efter där detta många mycket skulle",
    "da": "og at det er en på af for med den til ikke har de et som der var jeg så men fra kan eller ved når også sig"
    " efter hvor dette mange meget skulle blev",
    "no": "og å det er en på av for med den til ikke har de et som var jeg så men fra kan eller ved når også seg etter"
    " hvor dette mange mye skulle ble noen fordi",
    "fi": "ja on ei se että hän oli ovat joka kun mutta myös niin kuin mitä sen ole tai vain jos voi ne tämä siitä"
    " jotka hyvin olla sekä nyt vielä",
    "pl": "i w nie na się jest że do to z jak ale o po co tak od za przez dla czy być są jego jej tego może tym także"
    " lub oraz przy bardzo który która które",
    "cs": "a je se na že to v s z do o ale jako pro by si jsem jsou tak když nebo také po už jeho být byl která který"
    " které může však není mezi podle",
    "tr": "ve bir bu için ile da de çok olarak daha olan gibi var ne en kadar değil ya sonra her o ancak veya ise"
    " tarafından şey ama mı olduğu",
    "id": "yang dan di untuk dengan dari ini pada tidak itu dalam adalah akan ke oleh juga atau sebagai lebih karena"
    " ada telah dapat bahwa mereka kita saya anda",
    "vi": "và của là có không được cho một trong với các những này người đã để khi từ đến như cũng về nhiều ra thì vào"
    " sẽ nhưng hoặc bạn",
    "ro": "și de în la cu nu o un este pe că să din se mai pentru care sunt ce dar fost prin această acest sau după"
    " foarte ca fi ei lor",
    "hu": "a az és hogy nem is egy van ez de meg csak mint már még volt ha vagy kell azt el ami mert lehet nagyon"
    " szerint között után minden",
    "ru": "и в не на что с это как по но из он для от к так же за его она все было или быть когда если уже только они"
    " может также при очень",
    "uk": "і в не на що з це як до та але для від його вона є за було або бути коли якщо вже тільки вони може також при"
    " дуже їх щоб",
    "bg": "и в на не за се да от е с че като по са това ще но той тя или беше към може също много при които който само"
    " ако без",
    "ar": "في من على أن إلى هذا هذه التي الذي عن مع لا ما كان هو هي أو كما بين بعد قد ذلك كل لم",
    "fa": "و در به از که این را با است برای آن یک خود تا بر هم می یا شده بود اما نیز هر دارد کند های",
}  # fmt: skip
_FUNCTION = {code: frozenset(words.split()) for code, words in _COMMON.items()}
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=64)
def code_of(language: str) -> str:
    """The two-letter code of a language given by code or name, "" for one that cannot be identified here."""
    name = language.strip().casefold()
    if name in _NAMES:
        return name
    by_name = {each: code for code, each in _NAMES.items()}
    first = re.split(r"[\s(,_-]", name, maxsplit=1)[0]
    return by_name.get(name) or _OWN.get(name) or by_name.get(first) or (first if first in _NAMES else "")


def language_of(text: str) -> str:
    """The code of the most likely language of a text, "" if there is too little evidence.

    Most scripts identify a language; Latin, Cyrillic and Arabic text needs at least four of a language's most common
    words. Close languages (Danish and Norwegian, Hindi and Marathi, Indonesian and Malay) and mixed texts are not
    distinguished.
    """
    script = _script(text)
    if script in ("LATIN", "CYRILLIC", "ARABIC"):
        counts = _counts(text, script)
        code, most = max(counts.items(), key=lambda each: each[1])
        return code if most >= _LEAST_WORDS else ""
    return {"JAPANESE": "ja", "CJK": "zh"}.get(script, _SCRIPTS.get(script, ""))


def wrong_language(text: str, language: str) -> str:
    """The name of the language of a text if it is not the expected one; "" if it is, or if it cannot be identified.

    A different script is enough; within a script, another language needs half as many function words again.
    """
    code = code_of(language)
    if not code:
        return ""
    script, due = _script(text), _OF_SCRIPT.get(code, "LATIN")
    if not script:
        return ""
    title = code == "ja" and script == "CJK" and len(text) < _LEAST_LETTERS  # so short, Japanese may have no kana
    if script != due and not title:
        found = language_of(text)
        return _NAMES[found] if found else f"{script.lower()} letters"
    if code not in _FUNCTION:
        return ""
    counts = _counts(text, due)
    found, most = max(counts.items(), key=lambda each: each[1])
    return _NAMES[found] if most >= _LEAST_WORDS and most > _AHEAD * counts[code] else ""


def _counts(text: str, script: str) -> dict[str, int]:
    words = [word.casefold() for word in _WORD.findall(text[:_SAMPLE])]
    return {
        code: sum(word in common for word in words)
        for code, common in _FUNCTION.items()
        if _OF_SCRIPT.get(code, "LATIN") == script
    }


def _script(text: str) -> str:
    """The script of most letters, "" for too few letters; kana among Chinese characters means Japanese."""
    counts: Counter[str] = Counter()
    for letter, n in Counter(text[:_SAMPLE]).items():
        if name := _script_of(letter):
            counts[name] += n
    if counts.total() < _LEAST_LETTERS and not counts.keys() - {"LATIN", "CYRILLIC"}:
        return ""
    if not counts:
        return ""
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    if kana * 20 > counts.total():
        return "JAPANESE"
    return counts.most_common(1)[0][0]


@lru_cache(maxsize=4096)
def _script_of(letter: str) -> str:
    if not letter.isalpha():
        return ""
    return unicodedata.name(letter, "").split(" ", 1)[0]
