"""One program for many sizes: arguments are padded to a bucket's size, and what would read the padding is masked."""
