"""The languages of tasks, by the names that programs use."""

import enum


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1
    JAVA = 2

    def __str__(self):
        return self.name
