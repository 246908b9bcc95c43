"""Holds deploy/kubernetes to its promises, without a cluster: every folder builds, every object has
the form that the API server and KEDA expect, pods are closed, ports and options agree with each
other and with the programs, and a coordinator and a worker train with the arguments of the
manifests. Exits with 77, which ctest counts as skipped, where kubectl, Node.js or the schemas are
missing (npm installs these into the build folder once)."""

import copy
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, SOURCE, Case, tiny_sweep, wait_until  # noqa: E402
from printed_commands import Help  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
KUBERNETES = SOURCE / "deploy" / "kubernetes"
FOLDERS = ("base", "workers-keda", "workers-hpa", "overlays/gpu", "overlays/cpu")
SCHEMAS = BIN.parent / "npm" / "kubernetes"
USER = 10001
# libyaml's, where PyYAML has it: the one in Python takes seconds.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def install_schemas():
    """The packages of package-lock.json, once. Exits with 77 if npm does not get them."""
    locked = [HERE / name for name in ("package.json", "package-lock.json")]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in locked)).hexdigest()
    mark = SCHEMAS / "installed"
    if mark.exists() and mark.read_text() == key:
        return
    shutil.rmtree(SCHEMAS, ignore_errors=True)
    SCHEMAS.mkdir(parents=True)
    for path in locked:
        shutil.copy(path, SCHEMAS)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit",
                           "--no-fund", "--loglevel=error"], cwd=SCHEMAS, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        skip(f"npm cannot install the schemas: {done.stderr}")
    mark.write_text(key)


@functools.cache
def build(folder):
    done = subprocess.run(["kubectl", "kustomize", KUBERNETES / folder], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0 or done.stderr:  # a warning is a mistake too
        raise AssertionError(f"kubectl kustomize {folder}: {done.stderr}")
    return list(yaml.load_all(done.stdout, Loader))


def mistakes(manifests):
    """What is wrong with the objects of each manifest, by the schemas: a list for each."""
    # KEDA's schema says nothing about the metadata of pods; that of a Job does.
    manifests = [objects + [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
                             "spec": one["spec"]["jobTargetRef"]}
                            for one in objects if one["kind"] == "ScaledJob"]
                 for objects in manifests]
    # All in one call, because node takes long to load the schemas.
    done = subprocess.run(["node", HERE / "schemas.mjs", SCHEMAS], capture_output=True, text=True,
                          input=json.dumps(sum(manifests, [])), check=True)
    found = iter(json.loads(done.stdout))
    return [[sentence for _ in objects for sentence in next(found)] for objects in manifests]


def pods(objects):
    """The pod templates: {kind: template}."""
    found = {}
    for one in objects:
        spec = one.get("spec", {})
        template = spec.get("template") or spec.get("jobTargetRef", {}).get("template")
        if template:
            found[one["kind"]] = template
    return found


def find(objects, kind, name=None):
    found = [one for one in objects if one["kind"] == kind
             and name in (None, one["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects are a {kind} {name or ''}")
    return found[0]


def container_of(template):
    """The only container."""
    [container] = template["spec"]["containers"]
    return container


def option(container, name):
    """The values that the container's arguments give this option."""
    return [word.partition("=")[2] for word in container["args"]
            if word.partition("=")[0] == name]


def port_of(address):
    return int(address.rpartition(":")[2])


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.objects = {folder: build(folder) for folder in FOLDERS}

    def every_pod(self):
        return [template for objects in self.objects.values()
                for template in pods(objects).values()]

    def test_every_object_has_its_form(self):
        found = mistakes(self.objects.values())
        for folder, wrong in zip(self.objects, found, strict=True):
            with self.subTest(folder=folder):
                self.assertEqual(wrong, [])
        self.assertEqual(set(pods(self.objects["overlays/gpu"])), {"StatefulSet", "ScaledJob"})
        self.assertEqual(set(pods(self.objects["overlays/cpu"])), {"StatefulSet", "Deployment"})

    def test_a_mistake_is_found(self):
        """A wrong key, type or kind, and a key that is missing, in every kind of object."""
        objects = self.objects["overlays/gpu"] + self.objects["workers-hpa"]
        changes = [
            ("StatefulSet", ("spec", "template", "spec", "containers", 0, "readinesProbe"), {}),
            ("StatefulSet", ("spec", "template", "spec", "containers", 0, "livenessProbe", "grpc",
                             "prot"), 1),
            ("StatefulSet", ("spec", "replicas"), "one"),
            ("StatefulSet", ("spec", "selector"), None),
            ("StatefulSet", ("spec", "volumeClaimTemplates", 0, "spec", "accessMode"), "x"),
            ("ScaledJob", ("spec", "maxReplicas"), 4),
            ("ScaledJob", ("spec", "triggers", 0, "metadata", "targetValue"), 1),
            ("ScaledJob", ("spec", "jobTargetRef", "backofLimit"), 0),
            ("ScaledJob", ("spec", "jobTargetRef", "template", "metadata", "label"), {}),
            ("ScaledJob", ("spec", "jobTargetRef", "template", "spec", "volumes", 0, "emptyDir",
                           "size"), "1Gi"),
            ("HorizontalPodAutoscaler", ("spec", "metrics", 0, "external", "name"), "x"),
            ("Deployment", ("spec", "template", "spec", "securityContext", "runAsUsr"), 1),
            ("Service", ("spec", "ports", 0, "port"), "grpc"),
            ("PodDisruptionBudget", ("spec", "maxUnavailables"), 1),
            ("NetworkPolicy", ("spec", "policyType"), []),
            ("ConfigMap", ("data", "PELAB_SERVER"), 7),
            ("Namespace", ("kind",), "Namespaces")]
        manifests = []
        for kind, path, value in changes:
            changed = copy.deepcopy(next(one for one in objects if one["kind"] == kind))
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            if value is None:
                del holder[path[-1]]
            else:
                holder[path[-1]] = value
            manifests.append([changed])
        for (kind, path, _), wrong in zip(changes, mistakes(manifests), strict=True):
            with self.subTest(kind=kind, path=path):
                self.assertNotEqual(wrong, [])

    def test_pods_are_closed(self):
        """The profile "restricted" of pod security, and a root that cannot be written to."""
        namespace = find(self.objects["base"], "Namespace")
        self.assertEqual(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
                         "restricted")
        allowed = {"configMap", "emptyDir", "secret"}
        for template in self.every_pod():
            spec, container = template["spec"], container_of(template)
            self.assertFalse(spec["automountServiceAccountToken"])
            self.assertFalse(spec["enableServiceLinks"])
            context = spec["securityContext"]
            self.assertTrue(context["runAsNonRoot"])
            self.assertEqual({context["runAsUser"], context["runAsGroup"], context["fsGroup"]},
                             {USER})
            self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertEqual(container["securityContext"],
                             {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                              "capabilities": {"drop": ["ALL"]}})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec))
            kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
            self.assertLessEqual(kinds, allowed)
            for volume in spec["volumes"]:
                if "secret" in volume:
                    self.assertEqual(volume["secret"]["defaultMode"], 0o440)
            self.assertIn("memory", container["resources"]["limits"])
        build_script = (SOURCE / "deploy" / "oci" / "build.sh").read_text()
        self.assertIn(f"\nuser={USER}\n", build_script)

    def test_options_are_those_of_the_programs(self):
        programs = set()
        for template in self.every_pod():
            container = container_of(template)
            programs.add(container["name"])
            known = Help(BIN, [container["name"]]).options
            self.assertGreater(len(container["args"]), 5)
            for word in container["args"]:
                name, equals, _ = word.partition("=")
                self.assertIn(name, known)
                self.assertEqual(bool(equals), known[name], f"{name} takes a value, or takes none")
            self.assertNotIn("--no-such-option", known)
        self.assertEqual(programs, {"pelab-server", "pelab-worker"})

    def test_variables_are_set(self):
        """$(NAME) in arguments stays as it is if nothing sets NAME."""
        settings = find(self.objects["base"], "ConfigMap", "pelab-settings")["data"]
        used = set()
        for template in self.every_pod():
            container = container_of(template)
            self.assertEqual(container["envFrom"], [{"configMapRef": {"name": "pelab-settings"}}])
            known = {item["name"] for item in container.get("env", [])} | set(settings)
            names = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
            self.assertLessEqual(names, known)
            used |= names
        self.assertEqual(set(settings) - used, {"PELAB_SERVER"})

    def test_ports_agree(self):
        container = container_of(pods(self.objects["base"])["StatefulSet"])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(ports, {"grpc": port_of(option(container, "--listen")[0]),
                                 "http": port_of(option(container, "--http")[0]),
                                 "health": port_of(option(container, "--health")[0])})
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(container[probe]["grpc"]["port"], ports["health"])
        service = find(self.objects["base"], "Service")
        labels = pods(self.objects["base"])["StatefulSet"]["metadata"]["labels"]
        self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
        for port in service["spec"]["ports"]:
            self.assertEqual(ports[port["targetPort"]], port["port"])
        name = service["metadata"]["name"]
        settings = find(self.objects["base"], "ConfigMap")["data"]
        self.assertEqual(settings["PELAB_SERVER"], f"{name}:{ports['grpc']}")

    def test_the_network_lets_through_what_is_needed(self):
        objects = self.objects["overlays/gpu"]
        rules = {one["metadata"]["name"]: one["spec"] for one in objects
                 if one["kind"] == "NetworkPolicy"}
        self.assertEqual(rules["deny"], {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
        templates = pods(objects)
        for name, kind in (("coordinator", "StatefulSet"), ("workers", "ScaledJob")):
            self.assertLessEqual(rules[name]["podSelector"]["matchLabels"].items(),
                                 templates[kind]["metadata"]["labels"].items())
        opened = {port["port"] for rule in rules["coordinator"]["ingress"]
                  for port in rule["ports"]}
        self.assertEqual(opened, {"grpc", "http"})
        for rule in rules["coordinator"]["ingress"]:
            self.assertIn("from", rule, "an ingress rule without a source admits everybody")

    def test_each_pod_gets_the_secrets_it_needs_and_no_others(self):
        expected = {"StatefulSet": {"pelab-tls", "pelab-operator"},
                    "ScaledJob": {"pelab-tls", "pelab-worker"},
                    "Deployment": {"pelab-tls", "pelab-worker"}}
        for folder in ("overlays/gpu", "overlays/cpu"):
            for kind, template in pods(self.objects[folder]).items():
                secrets = {volume["secret"]["secretName"]: volume["secret"]
                           for volume in template["spec"]["volumes"] if "secret" in volume}
                self.assertEqual(set(secrets), expected[kind])
                if kind != "StatefulSet":
                    self.assertEqual([item["key"] for item in secrets["pelab-tls"]["items"]],
                                     ["ca.crt"])
                mounts = {mount["name"]: mount["mountPath"]
                          for mount in container_of(template)["volumeMounts"]}
                for word in container_of(template)["args"]:
                    path = word.partition("=")[2]
                    if path.startswith(("/etc/", "/var/")):
                        self.assertTrue(any(path.startswith(mount) for mount in mounts.values()),
                                        f"{path} is in no volume")

    def test_workers_end_by_themselves_and_in_time(self):
        job = find(self.objects["workers-keda"], "ScaledJob")["spec"]["jobTargetRef"]
        self.assertEqual((job["backoffLimit"], job["template"]["spec"]["restartPolicy"]),
                         (0, "Never"))
        self.assertEqual(option(container_of(job["template"]), "--idle-exit"), ["$(IDLE_EXIT)"])
        for template in self.every_pod():
            self.assertEqual(template["spec"]["terminationGracePeriodSeconds"], 60)
        limits = container_of(job["template"])["resources"]["limits"]
        self.assertEqual(limits["nvidia.com/gpu"], "1")
        cpu = container_of(pods(self.objects["overlays/cpu"])["Deployment"])
        self.assertNotIn("nvidia.com/gpu", cpu["resources"]["limits"])

    def test_attempts_know_their_image(self):
        for folder, kind in (("overlays/gpu", "ScaledJob"), ("overlays/cpu", "Deployment")):
            container = container_of(pods(self.objects[folder])[kind])
            variables = {item["name"]: item.get("value") for item in container["env"]}
            self.assertEqual(variables["PELAB_IMAGE"], container["image"])
            self.assertIn("/pelab-worker", container["image"])

    def test_the_metric_of_the_hpa_is_one_of_the_coordinator(self):
        hpa = find(self.objects["workers-hpa"], "HorizontalPodAutoscaler")
        self.assertEqual(hpa["spec"]["scaleTargetRef"]["name"],
                         find(self.objects["workers-hpa"], "Deployment")["metadata"]["name"])
        metric = hpa["spec"]["metrics"][0]["external"]["metric"]["name"]
        self.assertIn(f"| `{metric}{{", (SOURCE / "docs" / "operations.md").read_text())


class Programs(Case):
    """The programs with the arguments of the manifests, on this machine."""

    def setUp(self):
        super().setUp()
        self.objects = build("overlays/cpu")
        self.settings = find(self.objects, "ConfigMap")["data"]
        self.port = self.free_port()
        for folder in ("tls", "operator", "worker"):
            (self.folder / folder).mkdir()
        self.run_pelab("admin", "ca", "init", "ca")
        self.run_pelab("admin", "ca", "issue", "ca", "server", "pelab", "localhost", "--out", ".")
        for source, target in (("pelab.pem", "tls.crt"), ("pelab.key", "tls.key"),
                               ("ca/ca.pem", "ca.crt")):
            shutil.copy(self.folder / source, self.folder / "tls" / target)
        self.token("operator", "operator-token-of-thirty-two-bytes")

    @staticmethod
    def free_port():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            return taken.getsockname()[1]

    def token(self, who, text):
        path = self.folder / who / "token"
        path.write_text(text)
        path.chmod(0o600)

    def run_pelab(self, *words):
        done = subprocess.run([BIN / "pelab", *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        self.ok(done)
        return done.stdout

    def client(self, *words):
        return self.run_pelab("--server", f"localhost:{self.port}", "--tls-ca", "tls/ca.crt",
                              "--token-file", "operator/token", *words)

    def arguments(self, kind, **variables):
        """The arguments of a pod, with this machine's ports and folders."""
        words = []
        for word in container_of(pods(self.objects)[kind])["args"]:
            for name, value in {**self.settings, **variables}.items():
                word = word.replace(f"$({name})", value)
            word = word.replace("0.0.0.0:7470", f"127.0.0.1:{self.port}")
            word = re.sub(r"0\.0\.0\.0:\d+", "127.0.0.1:0", word)
            words.append(re.sub("/etc/pelab/|/var/lib/", f"{self.folder}/", word))
        return words

    def said(self, pattern):
        """What the coordinator has said on standard output."""
        return re.search(pattern, (self.folder / "server.log").read_text())

    def test_they_train(self):
        (self.folder / "pelab").mkdir()
        server = self.spawn("pelab-server", *self.arguments("StatefulSet", NAMESPACE="pelab"),
                            log="server.log")
        wait_until(lambda: server.poll() is not None or self.said("health checks on .*\n"), 20,
                   "the coordinator")
        self.assertIsNone(server.poll(), self.logs())
        self.check_demand(self.said(r"pages on (http://[^/]+)/").group(1))
        token = self.client("admin", "principal", "add", "workers", "--role", "worker")
        self.token("worker", token.strip())
        worker = self.spawn("pelab-worker", *self.arguments("Deployment", POD_NAME="pod-1"),
                            "--idle-exit", "2s", "--threads-per-slot", 1,
                            env={"PELAB_SERVER": f"localhost:{self.port}",
                                 "PELAB_IMAGE": "registry/pelab-worker@sha256:0"})
        path = self.write("sweep.yaml", tiny_sweep(epochs=1))
        self.client("submit", path, "--watch")
        self.assertEqual(worker.wait(30), 0, self.logs())
        server.terminate()
        self.assertEqual(server.wait(20), 0, self.logs())
        database = self.folder / "pelab" / "pelab.db"
        rows = self.query("SELECT environment_json FROM v_attempts", db=database)
        self.assertEqual([json.loads(text)["image"] for text, in rows],
                         ["registry/pelab-worker@sha256:0"] * 4)
        self.run_pelab("--db", database, "db", "check")

    def check_demand(self, address):
        """KEDA's request, to the names that it uses and to another one."""
        [trigger] = find(build("workers-keda"), "ScaledJob")["spec"]["triggers"]
        url = urllib.parse.urlsplit(trigger["metadata"]["url"])
        service = find(self.objects, "Service")
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        self.assertEqual(url.hostname, f"{name}.{namespace}.svc")
        self.assertIn(url.port, [port["port"] for port in service["spec"]["ports"]
                                 if port["name"] == "http"])

        def ask(host):
            request = urllib.request.Request(f"{address}{url.path}?{url.query}",
                                             headers={"Host": host})
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.load(answer)
        for host in (url.netloc, name):
            self.assertEqual(ask(host)[trigger["metadata"]["valueLocation"]], 0)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            ask("elsewhere.example.org")
        self.assertEqual(refused.exception.code, 421)


if __name__ == "__main__":
    for program in ("kubectl", "node", "npm"):
        if not shutil.which(program):
            skip(f"{program} is missing")
    help_text = subprocess.run(["kubectl", "kustomize", "--help"], capture_output=True, text=True,
                               check=False).stdout
    if "--enable-helm" not in help_text:
        skip("kubectl is older than 1.21, and its kustomize does not know replacements")
    install_schemas()
    os.environ.pop("PELAB_TOKEN", None)
    unittest.main()
