"""One program for many sizes: arguments are padded to a bucket's size, and reads of the padding are masked."""
