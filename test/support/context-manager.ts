import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, type ContextManager, context, ROOT_CONTEXT } from '@opentelemetry/api'

/** OpenTelemetry's active context as an application sets it up, in place of one that an earlier test has left. */
export function useContextManager(): void {
  const active = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (given, work, receiver, ...args) => active.run(given, () => work.call(receiver as never, ...args)),
    bind: (_given, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  context.disable()
  context.setGlobalContextManager(manager)
}
