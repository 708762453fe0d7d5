"""A form from a JSON Schema, and JSON from a form: pure functions, no page knows how.

`grow` makes the tree of fields from a value or from what a browser posted; `harvest` turns the tree back into JSON.
The one promise: a part is shown as fields only if those fields give back exactly the value they were made from;
everything else is shown as JSON text (decision 060).
"""

from toolyard.faces.console.forms.grow import grow
from toolyard.faces.console.forms.harvest import Harvest, harvest, locate
from toolyard.faces.console.forms.sources import ABSENT, FormSource, Pairs, ValueSource, edited
from toolyard.faces.console.forms.tree import Choice, Group, Leaf, Node, Raw, Rows, posted_pairs

__all__ = [
    "ABSENT",
    "Choice",
    "FormSource",
    "Group",
    "Harvest",
    "Leaf",
    "Node",
    "Pairs",
    "Raw",
    "Rows",
    "ValueSource",
    "edited",
    "grow",
    "harvest",
    "locate",
    "posted_pairs",
]
