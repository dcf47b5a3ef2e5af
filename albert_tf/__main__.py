"""`python -m albert_tf`: the command line."""

from albert_tf.cli.app import main

main()
