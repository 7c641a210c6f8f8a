// All pages. They are loaded with the program: a page can be opened while the broker is away.

import Definitions from "./pages/admin/definitions.js";
import Features from "./pages/admin/features.js";
import Limits from "./pages/admin/limits.js";
import Logins from "./pages/admin/logins.js";
import Parameters from "./pages/admin/parameters.js";
import Policies from "./pages/admin/policies.js";
import Policy from "./pages/admin/policy.js";
import User from "./pages/admin/user.js";
import Users from "./pages/admin/users.js";
import Vhost from "./pages/admin/vhost.js";
import Vhosts from "./pages/admin/vhosts.js";
import Channel from "./pages/channel.js";
import Channels from "./pages/channels.js";
import Connection from "./pages/connection.js";
import Connections from "./pages/connections.js";
import DeathHistory from "./pages/dead-letters/history.js";
import DeadLetterMap from "./pages/dead-letters/map.js";
import DeadLetterQueues from "./pages/dead-letters/queues.js";
import Exchange from "./pages/exchange.js";
import Exchanges from "./pages/exchanges.js";
import Health from "./pages/health.js";
import Node from "./pages/node.js";
import Nodes from "./pages/nodes.js";
import Overview from "./pages/overview.js";
import Queue from "./pages/queue/index.js";
import Queues from "./pages/queues.js";
import Redrives from "./pages/redrives/list.js";
import Redrive from "./pages/redrives/one.js";
import Replicas from "./pages/replicas.js";
import Scheduled from "./pages/scheduled/list.js";

/**
 * Every page: its address, its component, its part of the navigation, and the tag that a user needs for it.
 * `:name` stands for one segment, `:name?` at the end for one that may be missing and that does not make
 * another page (a tab). The component gets `{ params }`.
 */
export const ROUTES = [
  ["", Overview, "overview"],
  ["connections", Connections, "connections"],
  ["connections/:name", Connection, "connections"],
  ["channels", Channels, "channels"],
  ["channels/:name", Channel, "channels"],
  ["exchanges", Exchanges, "exchanges"],
  ["exchanges/:vhost/:name", Exchange, "exchanges"],
  ["queues", Queues, "queues"],
  ["queues/:vhost/:name/:tab?", Queue, "queues"],
  ["scheduled", Scheduled, "scheduled"],
  ["dead-letters", DeadLetterMap, "dead-letters"],
  ["dead-letters/queues", DeadLetterQueues, "dead-letter-queues"],
  ["dead-letters/history", DeathHistory, "dead-letter-history"],
  ["redrives", Redrives, "redrives"],
  ["redrives/:id", Redrive, "redrives"],
  ["nodes", Nodes, "nodes", "monitoring"],
  ["nodes/:name", Node, "nodes", "monitoring"],
  ["replicas", Replicas, "replicas", "monitoring"],
  ["health", Health, "health"],
  ["admin/users", Users, "users", "administrator"],
  ["admin/users/:name", User, "users", "administrator"],
  ["admin/vhosts", Vhosts, "vhosts"],
  ["admin/vhosts/:name", Vhost, "vhosts", "administrator"],
  ["admin/policies", Policies, "policies"],
  ["admin/policies/new", Policy, "policies", "policymaker"],
  ["admin/policies/:kind/:vhost/:name", Policy, "policies"],
  ["admin/limits", Limits, "limits"],
  ["admin/definitions", Definitions, "definitions", "administrator"],
  ["admin/parameters", Parameters, "parameters", "policymaker"],
  ["admin/features", Features, "features"],
  ["admin/logins", Logins, "logins", "monitoring"],
];
