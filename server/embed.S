/* Files that are served as they are, built into the binary: openapi_yaml, openapi_yaml_end. */
#ifdef __CET__
#include <cet.h> /* says that nothing here jumps, else the whole program loses the mark */
#endif
    .section .rodata
    .global openapi_yaml, openapi_yaml_end
    .balign 16
openapi_yaml:
    .incbin "api/openapi.yaml"
openapi_yaml_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
