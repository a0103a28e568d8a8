# install.cmake: what `cmake --install` puts where: the daemon, its CUDA module where it was built, the
# units, an empty configuration, the manual and the licences. The module's place is the one that
# kilnd looks in: ../lib/kiln of the folder that it is in.
#
# Units name the paths of this installation, so they are written when it is made (--prefix counts). They
# read their options from /etc where the prefix is /usr or /usr/local, else from PREFIX/etc. A
# configuration that is there is left alone.
install(TARGETS kilnd RUNTIME DESTINATION bin)
if(TARGET kiln_cuda)
    install(FILES $<TARGET_FILE:kiln_cuda> DESTINATION lib/kiln OPTIONAL)
endif()
file(GLOB manual ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES LICENSE NOTICE README.md SECURITY.md api/openapi.yaml systemd/kiln.conf
    systemd/keys.conf ${manual} DESTINATION share/doc/kiln)
install(CODE "set(source \"${CMAKE_SOURCE_DIR}/systemd\")")
install(CODE "set(scratch \"${CMAKE_BINARY_DIR}/units\")")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_units.cmake)
