"""Muses: a heavy policy learnt from an oracle, and light trees distilled from it (Zhong et al., INFOCOM 2022)."""
