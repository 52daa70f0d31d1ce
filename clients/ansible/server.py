#!/usr/bin/python
"""Ansible module: a server as it should be."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: server
short_description: Order, change, start, stop and destroy a server
description:
  - The server is known by its name in the workspace, or by its id. Running the module again changes nothing.
  - In check mode an order is tried as a dry run, so a wrong plan is found, and nothing is changed.
options:
  url: {description: Address of the portal. Default is E(SVCCTL_URL)., type: str}
  key: {description: The API key. Default is E(SVCCTL_KEY)., type: str}
  tenant: {description: "Workspace, by id or slug. Default is E(SVCCTL_TENANT), else that of the key.", type: str}
  name: {description: Name of the server., type: str}
  id: {description: Id of the server., type: int}
  state:
    description: C(present) leaves the power as it is, C(absent) destroys the server with its disk.
    type: str
    choices: [present, absent, started, stopped]
    default: present
  plan: {description: "Plan by slug. Another one resizes the server, which restarts it.", type: str}
  image: {description: "Image by slug. A server with another one is left as it is, with a warning, unless O(rebuild=true).", type: str}
  from_snapshot: {description: "Id of a snapshot whose disk the order copies, in place of O(image).", type: int}
  rebuild:
    description: A server with another O(image) gets this one on an empty disk, and a new root password.
    type: bool
    default: false
  location: {description: "Location by slug, for the order.", type: str}
  hostname: {description: Host name., type: str}
  labels: {description: All labels of the server., type: dict}
  ssh_keys: {description: "Public keys, or names of SSH keys of the workspace, for the order.", type: list, elements: str}
  user_data: {description: "For cloud-init, for the order.", type: str}
  firewall:
    description: The whole firewall, as C(PUT /servers/{id}/firewall) takes it.
    type: dict
    suboptions:
      enabled: {description: C(false) lets all traffic pass., type: bool, default: true}
      policies:
        description: What happens to traffic that no rule matches.
        type: dict
        required: true
        suboptions:
          inbound: {description: Into the server., type: str, choices: [accept, drop], required: true}
          outbound: {description: Out of the server., type: str, choices: [accept, drop], required: true}
      rules:
        description: All rules, in order.
        type: list
        elements: dict
        default: []
        suboptions:
          direction: {description: Of the traffic., type: str, choices: [inbound, outbound], default: inbound}
          action: {description: What happens to it., type: str, choices: [accept, drop], default: accept}
          protocol: {description: "Such as C(tcp).", type: str, required: true}
          ports: {description: "Such as C(80) or C(8000-9000); all by default.", type: str}
          sources: {description: Of an inbound rule; all by default., type: list, elements: str, default: []}
          destinations: {description: Of an outbound rule; all by default., type: list, elements: str, default: []}
          description: {description: A note., type: str, default: ""}
  snapshot: {description: "Name of a snapshot that is taken unless the server has one of that name. It is taken before a rebuild.", type: str}
  timeout: {description: Seconds that each step may take., type: int, default: 600}
author: [The provider]
"""
EXAMPLES = r"""
- virtual_servers.cloud.server:
    name: web-1
    plan: kvm-1
    image: debian-13
    labels: {env: prod}
    state: started
  register: web
  no_log: true # the answer of an order has root_password
"""
RETURN = r"""
server: {description: "The server; null when it is absent.", type: dict, returned: success}
root_password: {description: The password of root., type: str, returned: after an order or a rebuild}
forecast: {description: What the order would cost., type: dict, returned: in check mode}
"""

import ipaddress

from ansible.module_utils.basic import AnsibleModule, env_fallback

from ansible_collections.virtual_servers.cloud.plugins.module_utils.virtual_servers import (
    ApiError,
    Client,
    NoAnswerError,
    WaitError,
)

POWER = {"started": ("running", "start"), "stopped": ("stopped", "stop")}
WORKING = {"queued": "running", "provisioning": "running", "starting": "running", "rebooting": "running", "stopping": "stopped"}


def find(api, options):
    """The server as a read gives it; None where there is none."""
    if options["id"] is not None:
        found = [one for one in api.list_servers() if one["id"] == options["id"]]
    else:
        found = [one for one in api.list_servers(name=options["name"]) if one["name"] == options["name"]]
    found = [one for one in found if one["status"] != "deleting"]
    if len(found) > 1:
        raise ValueError(f"{len(found)} servers are called {options['name']}: name one by its id")
    return found[0] if found else None


def order(module, api, options):
    fields = {
        name: options[name]
        for name in ("name", "plan", "image", "location", "hostname", "labels", "ssh_keys", "user_data")
        if options[name] is not None
    }
    if options["from_snapshot"] is not None:
        fields["snapshot"] = options["from_snapshot"]
    for name in ("name", "plan", "image"):
        if name not in fields and not (name == "image" and "snapshot" in fields):
            raise ValueError(f"there is no such server, and an order needs {name}")
    if module.check_mode:
        return {"changed": True, "server": None, "forecast": api.create_server(**fields, dry_run=True)}
    made = api.create_server(**fields)
    server = api.wait_for_server(made["id"], "running", timeout=options["timeout"])
    return {"root_password": made["root_password"], **change(module, api, server, options), "changed": True}


def act(api, server, action, options):
    api.wait_for_action(api.act_on_server(server["id"], action=action)["id"], timeout=options["timeout"])
    return api.read_server(server["id"])


def is_other(server, name, wanted):
    """Whether the server has another plan, image or location than this slug or id."""
    return wanted is not None and wanted not in (server[name]["slug"], str(server[name]["id"]))


def comparable(firewall):
    """A firewall as it is given or read, without what only one of them has."""

    def blocks(given):
        return sorted(str(ipaddress.ip_network(one, strict=False)) for one in given or ["0.0.0.0/0", "::/0"])

    rules = [
        [rule[name] for name in ("direction", "action", "protocol", "ports", "description")]
        + [blocks(rule["sources" if rule["direction"] == "inbound" else "destinations"])]
        for rule in firewall["rules"]
    ]
    return [firewall["enabled"], firewall["policies"], rules]


def set_firewall(module, api, server, wanted):
    """Whether it was another one."""
    if comparable(wanted) == comparable(api.read_server_firewall(server["id"])):
        return False
    if not module.check_mode:
        # It takes effect as soon as the hypervisor has it, also where that is later.
        if api.replace_server_firewall(server["id"], **wanted, wait=30)["status"] == "failed":
            raise ValueError(f"the firewall of {server['name']} is kept, but the hypervisor did not take it")
    return True


def take_snapshot(module, api, server, options):
    """Whether there was none of that name."""
    if any(one["name"] == options["snapshot"] for one in api.list_server_snapshots(server["id"])):
        return False
    if not module.check_mode:
        taken = api.create_snapshot(server["id"], name=options["snapshot"])
        api.wait_for_action(taken["action_id"], timeout=options["timeout"])
    return True


def change(module, api, server, options):
    is_rebuilt = options["rebuild"] and is_other(server, "image", options["image"])
    for name in ("location",) if is_rebuilt else ("image", "location"):
        if is_other(server, name, options[name]):
            module.warn(f"{server['name']} has the {name} {server[name]['slug']}, not {options[name]}: it is left as it is")
    fields = {}
    if options["name"] is not None and options["name"] != server["name"]:
        fields["name"] = options["name"]
    if options["hostname"] is not None and options["hostname"] != server["hostname"]:
        fields["hostname"] = options["hostname"]
    if options["labels"] is not None and options["labels"] != server["labels"]:
        gone = {name: None for name in server["labels"] if name not in options["labels"]}
        fields["labels"] = {**gone, **options["labels"]}
    is_resized = is_other(server, "plan", options["plan"])
    if server["status"] in WORKING and not module.check_mode:
        server = api.wait_for_server(server["id"], WORKING[server["status"]], timeout=options["timeout"])
    changed = bool(fields) or is_rebuilt or is_resized
    if options["firewall"] is not None:
        changed = set_firewall(module, api, server, options["firewall"]) or changed
    if options["snapshot"] is not None:
        changed = take_snapshot(module, api, server, options) or changed
    status, action = POWER.get(options["state"], (server["status"], None))
    if module.check_mode:
        return {"changed": changed or status != server["status"], "server": server}
    made = {}
    if fields:
        server = api.update_server(server["id"], **fields)
    if is_rebuilt:
        rebuilt = api.rebuild_server(server["id"], image=options["image"])
        made["root_password"] = rebuilt["root_password"]
        api.wait_for_action(rebuilt["id"], timeout=options["timeout"])
    if is_resized:
        api.wait_for_action(api.resize_server(server["id"], plan=options["plan"])["id"], timeout=options["timeout"])
    if is_rebuilt or is_resized:
        server = api.read_server(server["id"])
    if status != server["status"] and action is not None:
        changed, server = True, act(api, server, action, options)
    return {"changed": changed, "server": server, **made}


def run(module):
    options = module.params
    api = Client(options["url"], options["key"], tenant=options["tenant"])
    server = find(api, options)
    if options["state"] != "absent":
        return order(module, api, options) if server is None else change(module, api, server, options)
    if server is not None and not module.check_mode:
        api.wait_for_action(api.destroy_server(server["id"])["id"], timeout=options["timeout"])
    return {"changed": server is not None, "server": None}


def main():
    text = {"type": "str"}
    blocks = {"type": "list", "elements": "str", "default": []}
    direction = {**text, "choices": ["inbound", "outbound"], "default": "inbound"}
    verdict = {**text, "choices": ["accept", "drop"]}
    policy = {**verdict, "required": True}
    rule = {
        **{"direction": direction, "action": {**verdict, "default": "accept"}, "protocol": {**text, "required": True}},
        **{"ports": text, "sources": blocks, "destinations": blocks, "description": {**text, "default": ""}},
    }
    firewall = {
        "enabled": {"type": "bool", "default": True},
        "policies": {"type": "dict", "required": True, "options": {"inbound": policy, "outbound": policy}},
        "rules": {"type": "list", "elements": "dict", "default": [], "options": rule},
    }
    module = AnsibleModule(
        argument_spec={
            "url": {**text, "required": True, "fallback": (env_fallback, ["SVCCTL_URL"])},
            "key": {**text, "required": True, "no_log": True, "fallback": (env_fallback, ["SVCCTL_KEY"])},
            "tenant": {**text, "fallback": (env_fallback, ["SVCCTL_TENANT"])},
            "name": text,
            "id": {"type": "int"},
            "state": {**text, "choices": ["present", "absent", "started", "stopped"], "default": "present"},
            "plan": text,
            "image": text,
            "from_snapshot": {"type": "int"},
            "rebuild": {"type": "bool", "default": False},
            "location": text,
            "hostname": text,
            "labels": {"type": "dict"},
            "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
            "user_data": {**text, "no_log": True},
            "firewall": {"type": "dict", "options": firewall},
            "snapshot": text,
            "timeout": {"type": "int", "default": 600},
        },
        required_one_of=[["name", "id"]],
        mutually_exclusive=[["image", "from_snapshot"]],
        supports_check_mode=True,
    )
    if module.params["labels"] is not None:
        module.params["labels"] = {name: str(value) for name, value in module.params["labels"].items()}
    try:
        module.exit_json(**run(module))
    except ApiError as error:
        module.fail_json(msg=str(error), code=error.code, reason=error.reason, request_id=error.request_id, fields=error.fields)
    except (NoAnswerError, WaitError, ValueError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
