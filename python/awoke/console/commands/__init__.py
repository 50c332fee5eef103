"""Commands of a console to the processes of an app. A process takes those that its setting `console_commands` names."""

from awoke.console.commands.commander import Commander
from awoke.operate.commands.views import Audit, CommandResult

__all__ = ["Audit", "CommandResult", "Commander"]
