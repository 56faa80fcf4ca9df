# The sources are those that the port lies in: this checkout, by an overlay port. Of a release, vcpkg_from_github stands here instead.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        blas SHARDWISE_WITH_BLAS
        cuda SHARDWISE_WITH_CUDA
        mpi  SHARDWISE_WITH_MPI
)

set(VCPKG_BUILD_TYPE release) # header-only
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DSHARDWISE_BUILD_TESTS=OFF
        -DSHARDWISE_BUILD_EXAMPLES=OFF
        -DSHARDWISE_BUILD_BENCH=OFF
        -DSHARDWISE_INSTALL=ON
        ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/shardwise)
vcpkg_fixup_pkgconfig()

# header-only: nothing is left in lib; the license is installed below as vcpkg wants it
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/licenses")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
