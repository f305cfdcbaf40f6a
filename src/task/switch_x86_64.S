/* SPDX-License-Identifier: MIT */
/* See switch.h.  The six registers that a function must preserve, and the stack.  The
 * control words of the floating point units are not saved: tasks of one worker share
 * them, as function calls do (saving them took the switch from 4 to 7 ns).
 *
 * The processor predicts each `ret` from a stack of its own, which knows nothing of this
 * one.  It stays right if every switch pops as much as it pushed: tasks that wait in the
 * same function then return through it without a wrong guess (a yield took 27 ns when it
 * did not, and 15 when it did).  Hence `ret` here, where a `call` came in; but jumps on
 * the way into a new stack and out of a finished one, where none did. */
    .text

/* void switch_stacks(void **save_sp, void *to_sp) */
    .globl  switch_stacks
    .hidden switch_stacks
    .type   switch_stacks, @function
    .align  16
switch_stacks:
    .cfi_startproc
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    ret
    .cfi_endproc
    .size   switch_stacks, . - switch_stacks

/* Jumped to with rsp already on the stack to go on with. */
    .globl  switch_resume
    .hidden switch_resume
    .type   switch_resume, @function
    .align  16
switch_resume:
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    popq    %rcx
    jmpq    *%rcx
    .size   switch_resume, . - switch_resume

/* Where a new stack begins: r12 is the function, r13 its argument, and a return address
 * of 0, where backtraces end, is on the stack. */
    .globl  switch_entry
    .hidden switch_entry
    .type   switch_entry, @function
    .align  16
switch_entry:
    .cfi_startproc
    .cfi_undefined rip
    xorl    %ebp, %ebp
    movq    %r13, %rdi
    jmpq    *%r12
    .cfi_endproc
    .size   switch_entry, . - switch_entry

    .section .note.GNU-stack, "", @progbits
