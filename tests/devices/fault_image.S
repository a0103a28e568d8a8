/* The fat binary of fault.cu. */
    .section .rodata
    .global fault_image
    .hidden fault_image
    .balign 16
fault_image:
    .incbin "fault.fatbin"
    .section .note.GNU-stack, "", @progbits
