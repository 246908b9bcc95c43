// node fetch_packages.mjs LOCK DIR: puts the packages of a package-lock.json that this system can
// use into DIR/node_modules, as `npm ci --ignore-scripts` does, for systems without npm (in Debian
// it is 330 packages). Each must have the bytes whose SHA-512 the lock file says; no script of a
// package is run. The registry is that of NPM_CONFIG_REGISTRY, or npm's own. Exit status 1 and a
// sentence on standard error if anything is wrong; nothing is left in DIR then.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const PREFIX = 'node_modules/';
const registry = (process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry ??
                  'https://registry.npmjs.org').replace(/\/+$/, '');

// `os`, `cpu` and `libc` list what a package is for; most are for all.
function isForThisSystem(entry) {
  const allows = (list, own) => list === undefined || list.includes(own);
  return allows(entry.os, process.platform) && allows(entry.cpu, process.arch) &&
    allows(entry.libc, 'glibc');
}

async function download(name, version) {
  const url = `${registry}/${name}/-/${name.split('/').at(-1)}-${version}.tgz`;
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`the registry answers ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    throw new Error(`${url}: ${error.cause?.message ?? error.message}`);
  }
}

function check(name, integrity, bytes) {
  if (!/^sha512-/.test(integrity ?? '')) throw new Error(`${name}: the lock file has no SHA-512`);
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  if (found !== integrity) {
    throw new Error(`${name}: its bytes have ${found}, the lock file says ${integrity}`);
  }
}

async function install(path, entry, folder) {
  const name = path.slice(PREFIX.length);
  const bytes = await download(name, entry.version);
  check(name, entry.integrity, bytes);
  const target = join(folder, path);
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xz', '--strip-components=1', '--no-same-owner', '-C', target],
               { input: bytes });
}

const [lock, folder, ...rest] = process.argv.slice(2);
if (folder === undefined || rest.length > 0) {
  console.error('usage: node fetch_packages.mjs LOCK DIR');
  process.exit(2);
}
try {
  rmSync(join(folder, PREFIX), { recursive: true, force: true });
  for (const [path, entry] of Object.entries(JSON.parse(readFileSync(lock, 'utf8')).packages)) {
    if (path.startsWith(PREFIX) && isForThisSystem(entry)) await install(path, entry, folder);
  }
} catch (error) {
  rmSync(join(folder, PREFIX), { recursive: true, force: true });
  console.error(`fetch_packages.mjs: ${error.message}`);
  process.exit(1);
}
