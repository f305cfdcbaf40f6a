/* SPDX-License-Identifier: MIT */
/* See switch.h.  The six registers that a function must preserve, and the stack.  The
 * control words of the floating point units are not saved: tasks of one worker share
 * them, as function calls do (saving them took the switch from 4 to 7 ns).
 *
 * The processor predicts each `ret` from a stack of its own, which knows nothing of this
 * one.  It stays right if every switch pops as much as it pushed: tasks that wait in the
 * same function then return through it without a wrong guess (a yield took 27 ns when it
 * did not, and 15 when it did).  Hence `ret` here, where a `call` came in.  A new stack is
 * jumped into, so that the call which led there is still the one to return from: a task
 * that ends without having waited goes back by `ret` (switch_back).  Any other is jumped
 * out of (switch_resume).  Starting and joining a task took 69 ns without that, and 52
 * with it. */
    .text

/* Save what must be preserved, and the stack at (rdi); go to the one in rsi. */
    .macro  leave_for_rsi
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    .endm

    .macro  restore
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    .endm

/* void switch_stacks(void **save_sp, void *to_sp)
 * switch_back is jumped to with rsp already on the stack to go back to. */
    .globl  switch_stacks
    .hidden switch_stacks
    .globl  switch_back
    .hidden switch_back
    .type   switch_stacks, @function
    .align  16
switch_stacks:
    .cfi_startproc
    leave_for_rsi
switch_back:
    restore
    ret
    .cfi_endproc
    .size   switch_stacks, . - switch_stacks

/* void switch_begin(void **save_sp, void *top, void (*fn)(void *), void *arg)
 * A return address of 0 is where backtraces end. */
    .globl  switch_begin
    .hidden switch_begin
    .type   switch_begin, @function
    .align  16
switch_begin:
    .cfi_startproc
    leave_for_rsi
    pushq   $0
    xorl    %ebp, %ebp
    movq    %rcx, %rdi
    jmpq    *%rdx
    .cfi_endproc
    .size   switch_begin, . - switch_begin

/* Jumped to with rsp already on the stack to go on with, whoever called from there. */
    .globl  switch_resume
    .hidden switch_resume
    .type   switch_resume, @function
    .align  16
switch_resume:
    restore
    popq    %rcx
    jmpq    *%rcx
    .size   switch_resume, . - switch_resume

/* Where a prepared stack begins: r12 is the function, r13 its argument, and the return
 * address of 0 is on the stack. */
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
