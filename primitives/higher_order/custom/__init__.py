"""Calls with rules that users wrote: custom_jvp, custom_vjp, custom_vmap, linear_call, linear solves."""
