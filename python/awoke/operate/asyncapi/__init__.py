"""The interface of an app as an AsyncAPI 3.0 document, and what a change of it breaks for others."""

from awoke.operate.asyncapi.diff import Change, changes
from awoke.operate.asyncapi.document import document_of

__all__ = ["Change", "changes", "document_of"]
