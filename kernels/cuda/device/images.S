/* The kernels' fat binaries, built into the module: kiln_image_<name>. */
#ifdef __CET__
#include <cet.h> /* says that nothing here jumps, else the whole program loses the mark */
#endif
    .macro image name
    .section .rodata
    .global kiln_image_\name
    .hidden kiln_image_\name
    .balign 16
kiln_image_\name:
    .incbin "\name\().fatbin"
    .endm

#include "cuda_images.inc" /* image NAME, for each .cu; made by CMake */
    .section .note.GNU-stack, "", @progbits
