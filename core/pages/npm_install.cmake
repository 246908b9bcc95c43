# cmake -DNPM=… -DSOURCE=core/pages -DTARGET=DIR -P: the locked packages into DIR/node_modules;
# DIR/installed marks that it succeeded. No script of a package is run.
file(MAKE_DIRECTORY ${TARGET})
file(REMOVE ${TARGET}/installed)
file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json DESTINATION ${TARGET})
execute_process(COMMAND ${NPM} ci --ignore-scripts --prefer-offline --no-audit --no-fund
                --loglevel=error
                WORKING_DIRECTORY ${TARGET} RESULT_VARIABLE status OUTPUT_VARIABLE said
                                  ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "npm could not install the packages of core/pages/package-lock.json into "
          "${TARGET} (it needs the npm "
                      "registry or npm's cache, once):\n${said}")
endif()
file(TOUCH ${TARGET}/installed)
