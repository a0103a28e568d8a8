# harden.cmake: what the compiler and the linker can do against memory errors, where they can.
#
# Each flag is tried first: another compiler or machine may lack it. tests/hardening.sh reads from
# the finished programs that none was lost on the way.
#
# KILN_SANITIZE=address,undefined or thread: everything compiled with these sanitizers instead; a
# finding ends the process. _FORTIFY_SOURCE is left out then, because its own copies of the library
# calls hide them from the sanitizers.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

option(KILN_HARDEN "protect stacks, library calls, jumps and tables" ON)
set(KILN_SANITIZE "" CACHE STRING "sanitizers: address,undefined or thread; empty for none")

check_pie_supported(LANGUAGES C)

function(harden_compile flag)
    string(MAKE_C_IDENTIFIER "has${flag}" known)
    check_c_compiler_flag("${flag}" ${known})
    if(${known})
        add_compile_options("$<$<COMPILE_LANGUAGE:C,ASM>:${flag}>")
    endif()
endfunction()

function(harden_link flag)
    string(MAKE_C_IDENTIFIER "links${flag}" known)
    check_linker_flag(C "${flag}" ${known})
    if(${known})
        add_link_options("${flag}")
    endif()
endfunction()

if(KILN_SANITIZE)
    add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${KILN_SANITIZE})
    if(KILN_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
endif()

if(KILN_HARDEN)
    harden_compile(-fstack-protector-strong)
    harden_compile(-fstack-clash-protection)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        harden_compile(-fcf-protection=full)
    endif()
    if(NOT KILN_SANITIZE)
        # Needs optimisation to work. Some compilers define a lower level by themselves.
        add_compile_options(
            "$<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE>"
            "$<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=3>")
    endif()
    harden_link(-Wl,-z,relro)
    harden_link(-Wl,-z,now)
    harden_link(-Wl,-z,noexecstack)
endif()
