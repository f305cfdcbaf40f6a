/* SPDX-License-Identifier: MIT */
/* See switch.h.  x19 to x30, the lower halves of v8 to v15, and the stack. */
    .text

/* Save what must be preserved, and the stack at [x0]; go to the one in x1. */
    .macro  leave_for_x1
    stp     x19, x20, [sp, #-160]!
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    stp     x29, x30, [sp, #80]
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    mov     x9, sp
    str     x9, [x0]
    mov     sp, x1
    .endm

    .macro  restore
    ldp     x21, x22, [sp, #16]
    ldp     x23, x24, [sp, #32]
    ldp     x25, x26, [sp, #48]
    ldp     x27, x28, [sp, #64]
    ldp     x29, x30, [sp, #80]
    ldp     d8, d9, [sp, #96]
    ldp     d10, d11, [sp, #112]
    ldp     d12, d13, [sp, #128]
    ldp     d14, d15, [sp, #144]
    ldp     x19, x20, [sp], #160
    .endm

/* void switch_stacks(void **save_sp, void *to_sp)
 * switch_back is jumped to with sp already on the stack to go back to. */
    .globl  switch_stacks
    .hidden switch_stacks
    .globl  switch_back
    .hidden switch_back
    .type   switch_stacks, %function
    .align  4
switch_stacks:
    .cfi_startproc
    leave_for_x1
switch_back:
    restore
    ret
    .cfi_endproc
    .size   switch_stacks, . - switch_stacks

/* void switch_begin(void **save_sp, void *top, void (*fn)(void *), void *arg)
 * A return address of 0 is where backtraces end. */
    .globl  switch_begin
    .hidden switch_begin
    .type   switch_begin, %function
    .align  4
switch_begin:
    .cfi_startproc
    leave_for_x1
    mov     x29, #0
    mov     x30, #0
    mov     x0, x3
    br      x2
    .cfi_endproc
    .size   switch_begin, . - switch_begin

/* Jumped to with sp already on the stack to go on with, whoever called from there. */
    .globl  switch_resume
    .hidden switch_resume
    .type   switch_resume, %function
    .align  4
switch_resume:
    restore
    br      x30
    .size   switch_resume, . - switch_resume

/* Where a prepared stack begins: x19 is the function, x20 its argument. */
    .globl  switch_entry
    .hidden switch_entry
    .type   switch_entry, %function
    .align  4
switch_entry:
    .cfi_startproc
    .cfi_undefined x30
    mov     x29, #0
    mov     x30, #0
    mov     x0, x20
    br      x19
    .cfi_endproc
    .size   switch_entry, . - switch_entry

    .section .note.GNU-stack, "", %progbits
