/* Files that are served as they are, built into the binary: NAME up to NAME_end. */
#ifdef __CET__
#include <cet.h> /* says that nothing here jumps, else the whole program loses the mark */
#endif
    .section .rodata
    .global openapi_yaml, openapi_yaml_end, openapi_json, openapi_json_end
    .balign 16
openapi_yaml:
    .incbin "api/served/openapi.yaml"
openapi_yaml_end:
    .byte 0
    .balign 16
openapi_json:
    .incbin "api/served/openapi.json"
openapi_json_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
