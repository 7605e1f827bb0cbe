/** A loopback proxy between a client and a server, which can fall silent as a broken network does. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  port: number
  /** Connections that were accepted so far. */
  accepted(): number
  /** Neither forwards nor closes anything of the connections that are open now. */
  silence(): void
  /** Closes the connections that are open now. */
  disconnect(): void
  /** New connections lead to another port. */
  leadTo(port: number): void
  close(): Promise<void>
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  let leadsTo = target
  let accepted = 0
  const open = new Set<{ near: Socket; far: Socket; isSilent: boolean }>()
  const server = createServer(near => {
    accepted += 1
    const far = connect(leadsTo, '127.0.0.1')
    const pair = { near, far, isSilent: false }
    open.add(pair)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', chunk => void (pair.isSilent || to.write(chunk)))
      from.on('error', () => {})
      from.on('close', () => void (pair.isSilent || to.destroy()))
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    silence: () => {
      for (const pair of open) pair.isSilent = true
    },
    disconnect: () => {
      for (const { near } of open) near.destroy()
    },
    leadTo: port => {
      leadsTo = port
    },
    close: async () => {
      for (const { near, far } of open) for (const socket of [near, far]) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
