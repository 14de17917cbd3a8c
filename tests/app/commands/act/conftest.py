from tests.app.commands.act.helper import place

__all__ = ["place"]
