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
  image: {description: "Image by slug, for the order. A server with another image is left as it is, with a warning.", type: str}
  location: {description: "Location by slug, for the order.", type: str}
  hostname: {description: Host name., type: str}
  labels: {description: All labels of the server., type: dict}
  ssh_keys: {description: "Public keys, or names of SSH keys of the workspace, for the order.", type: list, elements: str}
  user_data: {description: "For cloud-init, for the order.", type: str}
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
root_password: {description: The password of root., type: str, returned: after an order}
forecast: {description: What the order would cost., type: dict, returned: in check mode}
"""

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
    for name in ("name", "plan", "image"):
        if name not in fields:
            raise ValueError(f"there is no such server, and an order needs {name}")
    if module.check_mode:
        return {"changed": True, "server": None, "forecast": api.create_server(**fields, dry_run=True)}
    made = api.create_server(**fields)
    server = api.wait_for_server(made["id"], "running", timeout=options["timeout"])
    if options["state"] == "stopped":
        server = act(api, server, "stop", options)
    return {"changed": True, "server": server, "root_password": made["root_password"]}


def act(api, server, action, options):
    api.wait_for_action(api.act_on_server(server["id"], action=action)["id"], timeout=options["timeout"])
    return api.read_server(server["id"])


def change(module, api, server, options):
    for name in ("image", "location"):
        if options[name] is not None and options[name] not in (server[name]["slug"], str(server[name]["id"])):
            module.warn(f"{server['name']} has the {name} {server[name]['slug']}, not {options[name]}: it is left as it is")
    fields = {}
    if options["name"] is not None and options["name"] != server["name"]:
        fields["name"] = options["name"]
    if options["hostname"] is not None and options["hostname"] != server["hostname"]:
        fields["hostname"] = options["hostname"]
    if options["labels"] is not None and options["labels"] != server["labels"]:
        gone = {name: None for name in server["labels"] if name not in options["labels"]}
        fields["labels"] = {**gone, **options["labels"]}
    is_resized = options["plan"] is not None and options["plan"] not in (server["plan"]["slug"], str(server["plan"]["id"]))
    if server["status"] in WORKING and not module.check_mode:
        server = api.wait_for_server(server["id"], WORKING[server["status"]], timeout=options["timeout"])
    status, action = POWER.get(options["state"], (server["status"], None))
    is_switched = status != server["status"]
    changed = bool(fields) or is_resized or is_switched
    if module.check_mode:
        return {"changed": changed, "server": server}
    if fields:
        server = api.update_server(server["id"], **fields)
    if is_resized:
        resized = api.resize_server(server["id"], plan=options["plan"])
        api.wait_for_action(resized["id"], timeout=options["timeout"])
        server = api.read_server(server["id"])
    if is_switched and server["status"] != status:
        server = act(api, server, action, options)
    return {"changed": changed, "server": server}


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
            "location": text,
            "hostname": text,
            "labels": {"type": "dict"},
            "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
            "user_data": {**text, "no_log": True},
            "timeout": {"type": "int", "default": 600},
        },
        required_one_of=[["name", "id"]],
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
