import { calls } from './calls.js'
// as documented
import { Agent, RetryAgent, request } from 'undici'

const api = new RetryAgent(new Agent(), {
  maxRetries: 5,
  // In place of the default, which comes back after maxTimeout, 30 s, though it was
  // told to wait longer.
  retry (err, { state, opts }, done) {
    const { methods, statusCodes, errorCodes, maxRetries } = opts.retryOptions
    const again = methods.includes(opts.method) && state.counter <= maxRetries &&
      (err.statusCode ? statusCodes.includes(err.statusCode) : errorCodes.includes(err.code))
    const told = Number(err.headers?.['retry-after'] ?? 0) * 1000
    if (!again || told > 60_000) return done(err)
    setTimeout(() => done(null), Math.max(told, 500 * 2 ** (state.counter - 1)))
  }
})
// end

const plain = new RetryAgent(new Agent())
// The default's clamp, in little.
const clamped = new RetryAgent(new Agent(), { maxTimeout: 1000, maxRetries: 2 })

const way = (dispatcher) => async ({ url, ...options }) => {
  try {
    const { statusCode, body } = await request(url, { dispatcher, ...options })
    await body.dump()
    return statusCode
  } catch (e) {
    if (!e.statusCode) throw e
    return e.statusCode
  }
}

await calls({ plain: way(plain), bare: way(plain), clamped: way(clamped), tuned: way(api) })
