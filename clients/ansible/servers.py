"""Ansible inventory plugin: the servers of a workspace."""

from __future__ import annotations

DOCUMENTATION = r"""
name: servers
short_description: Servers of a workspace
description:
  - Reads a file whose name ends with C(servers.yml) or C(servers.yaml).
  - Hosts have the names of their servers, or C(NAME-ID) where several have one name. Their variables are the fields of the server with
    C(server_) before them. C(ansible_host) is the first public address, else the first private one.
  - Groups are C(location_SLUG), C(plan_SLUG) and C(image_SLUG), and those of the options C(groups) and C(keyed_groups).
extends_documentation_fragment: [constructed]
options:
  plugin: {description: The name of this plugin., required: true, choices: [virtual_servers.cloud.servers]}
  url: {description: Address of the portal., required: true, env: [{name: SVCCTL_URL}]}
  key: {description: The API key; a read key is enough., required: true, env: [{name: SVCCTL_KEY}]}
  tenant: {description: "Workspace, by id or slug.", env: [{name: SVCCTL_TENANT}]}
  status: {description: "Servers with this status, such as C(running)."}
  label: {description: "Servers with these labels, such as C(env=prod)."}
"""

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable

from ansible_collections.virtual_servers.cloud.plugins.module_utils.virtual_servers import (
    UNSET,
    ApiError,
    Client,
    NoAnswerError,
)


class InventoryModule(BaseInventoryPlugin, Constructable):
    NAME = "virtual_servers.cloud.servers"

    def verify_file(self, path):
        return super().verify_file(path) and path.endswith(("servers.yml", "servers.yaml"))

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        api = Client(self.get_option("url"), self.get_option("key"), tenant=self.get_option("tenant"))
        try:
            servers = list(
                api.list_servers(
                    status=self.get_option("status") or UNSET, label=self.get_option("label") or UNSET, limit=200
                )
            )
        except (ApiError, NoAnswerError) as error:
            raise AnsibleParserError(f"the servers can't be read: {error}") from error
        names = [server["name"] for server in servers]
        for server in servers:
            name = server["name"] if names.count(server["name"]) == 1 else f"{server['name']}-{server['id']}"
            self.inventory.add_host(name)
            self._describe(name, server)

    def _describe(self, name, server):
        variables = {f"server_{field}": value for field, value in server.items()}
        addresses = [one["address"] for one in server["public_ips"]] + [one["ip"] for one in server["private_networks"]]
        if addresses:
            variables["ansible_host"] = addresses[0]
        for field, value in variables.items():
            self.inventory.set_variable(name, field, value)
        for kind in ("location", "plan", "image"):
            group = self.inventory.add_group(self._sanitize_group_name(f"{kind}_{server[kind]['slug']}"))
            self.inventory.add_child(group, name)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)
