import type { Duplex } from 'node:stream'
import { Client, type ClientConfig } from 'pg'
import type { Login } from '../../gate/open-gate.ts'
import { uncontrolled } from './shared-connections.ts'

/**
 * Opens a session with the driver's help, whatever kind of password or encryption the server wants,
 * and takes its socket over. `parameters` are those with which the first session was started.
 */
export async function login(
  config: ClientConfig,
  parameters: ReadonlyMap<string, string>,
): Promise<Login> {
  const { stream: _, ...own } = config as ClientConfig & { stream?: unknown }
  const client = new Client({
    ...own,
    ...named(parameters, 'user', 'user'),
    ...named(parameters, 'database', 'database'),
    ...named(parameters, 'options', 'options'),
    ...named(parameters, 'application_name', 'application_name'),
  }) as Client & { readonly connection: { readonly stream: Duplex }; readonly processID: number }
  uncontrolled.add(client)
  // It hears of the end of a socket that is no longer its own.
  client.on('error', () => {})
  await client.connect()
  const { stream } = client.connection
  for (const event of ['data', 'error', 'end', 'close']) stream.removeAllListeners(event)
  return { socket: stream, pid: client.processID }
}

function named(parameters: ReadonlyMap<string, string>, from: string, to: string): ClientConfig {
  const value = parameters.get(from)
  return value === undefined ? {} : { [to]: value }
}
