"""Tests of single parts. A package: files of these names are in other directories too."""
