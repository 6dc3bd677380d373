"""Other libraries' names and conventions on top of subword: change one import, and code written for them runs.

    import subword.compat.tiktoken as tiktoken

One file or folder a library; its docstring lists where it differs, and why.
"""
