# cmake -DNPM=… -DNODE=… -DSOURCE=core/pages -DTARGET=DIR -P: the locked packages into
# DIR/node_modules; DIR/installed marks that it succeeded. No script of a package is run. NPM may be
# NOTFOUND; npm knows proxies, registries and caches that fetch_packages.mjs does not.
file(MAKE_DIRECTORY ${TARGET})
file(REMOVE ${TARGET}/installed)
file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json DESTINATION ${TARGET})
if(NPM)
  set(install ${NPM} ci --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error)
  set(needs "the npm registry or npm's cache, once")
else()
  set(install ${NODE} ${SOURCE}/fetch_packages.mjs package-lock.json .)
  set(needs "the npm registry, once; behind a proxy please install npm, which has settings for it")
endif()
execute_process(COMMAND ${install} WORKING_DIRECTORY ${TARGET}
  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "could not install the packages of core/pages/package-lock.json into "
    "${TARGET} (it needs ${needs}):\n${said}")
endif()
file(TOUCH ${TARGET}/installed)
