"""Muses: a heavy policy learnt from an oracle, and trees distilled from it (Zhong et al., 2022)."""
