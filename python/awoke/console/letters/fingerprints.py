"""Makes the fingerprint of a dead letter: the same for one error class of one handler whose texts differ in details."""

from __future__ import annotations

import hashlib
import re

from awoke.operate.dead_letters.letters import Letter

DETAILS = re.compile(r"""'[^']{0,200}'|"[^"]{0,200}"|0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|[0-9]+""")
"""Parts of an error's text that differ from message to message: quotations, addresses, ids and numbers."""
TEXT_MAX = 200
"""The characters of a text that count: behind them, texts often quote the message."""


def fingerprint_of(letter: Letter) -> str:
    """Returns the fingerprint of a dead letter. Does not block."""
    origin = letter.origin
    parts = [origin.error_type, origin.handler, without_details(origin.error_text)]
    return hashlib.blake2b("\n".join(parts).encode(errors="replace"), digest_size=8).hexdigest()


def without_details(text: str) -> str:
    """Returns the text of an error without what differs from message to message."""
    return DETAILS.sub("…", text[: 5 * TEXT_MAX])[:TEXT_MAX]
