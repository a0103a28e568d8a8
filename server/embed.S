/* Files that are served as they are, built into the binary: openapi_yaml, openapi_yaml_end. */
    .section .rodata
    .global openapi_yaml, openapi_yaml_end
    .balign 16
openapi_yaml:
    .incbin "api/openapi.yaml"
openapi_yaml_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
