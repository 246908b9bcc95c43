// node schemas.mjs NPM_FOLDER: reads an array of Kubernetes objects (JSON) on standard input and
// writes an array of what is wrong with each: sentences, by the schemas of kubernetes-models.
import {createRequire} from 'node:module';
import path from 'node:path';
import process from 'node:process';
import {text} from 'node:stream/consumers';

const load = createRequire(path.join(process.argv[2], 'package.json'));

// 'apps/v1' -> kubernetes-models/apps/v1, 'keda.sh/v1alpha1' -> that of KEDA.
function classOf({apiVersion, kind}) {
  const packages = ['kubernetes-models', '@kubernetes-models/keda'];
  for (const name of packages) {
    try {
      const found = load(`${name}/${apiVersion}`)[kind];
      if (found) return found;
    } catch (error) {
      if (!/NOT_EXPORTED|NOT_FOUND/.test(error.code)) throw error;
    }
  }
  return null;
}

// The schemas name the keys that an object may have, but allow others too. The functions that they
// are compiled to read each key that they know, and all keys of a map. So a key that nobody reads
// is not in the schema, unless no key of its object is read: then the object may be anything.
class Watch {
  #unread = [];  // {where, key, read: the keys of its object that were read}

  of(value, where) {
    if (typeof value !== 'object' || value === null) return value;
    const read = new Set();
    const seen = new Map();
    if (!Array.isArray(value)) {
      for (const key of Object.keys(value)) this.#unread.push({where, key, read});
    }
    return new Proxy(value, {
      get: (target, key) => {
        read.add(key);
        if (!Object.hasOwn(target, key)) return target[key];
        if (!seen.has(key)) seen.set(key, this.of(target[key], `${where}.${String(key)}`));
        return seen.get(key);
      },
    });
  }

  unknown() {
    return this.#unread.filter(({key, read}) => read.size > 0 && !read.has(key))
        .map(({where, key}) => `${where}.${key} is not in the schema`);
  }
}

function wrong(object) {
  const model = classOf(object);
  if (!model) return [`${object.apiVersion} ${object.kind} is not known`];
  const watch = new Watch();
  try {
    model.prototype.validate.call(watch.of(object, object.kind));
  } catch (error) {
    if (!error.errors) throw error;
    return [error.message];
  }
  return watch.unknown();
}

process.stdout.write(JSON.stringify(JSON.parse(await text(process.stdin)).map(wrong)));
