"""Skills: procedures that agents load when they need them, as folders with a SKILL.md (Agent Skills)."""

from toolyard.skills.archive import from_zip, to_zip
from toolyard.skills.folder import from_folder
from toolyard.skills.library import Library, SkillEntry
from toolyard.skills.skill import MANIFEST, Skill, SkillFile, from_files, from_text

__all__ = [
    "MANIFEST",
    "Library",
    "Skill",
    "SkillEntry",
    "SkillFile",
    "from_files",
    "from_folder",
    "from_text",
    "from_zip",
    "to_zip",
]
