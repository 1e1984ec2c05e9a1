import { calls } from './calls.js'
// as documented
import got from 'got'

const api = got.extend({
  retry: { limit: 5, maxRetryAfter: 60_000 } // told to wait longer, it gives the 429 back
})
// end

const way = (client) => async ({ url, ...options }) => {
  try {
    return (await client(url, options)).statusCode
  } catch (e) {
    if (e.name !== 'HTTPError') throw e
    return e.response.statusCode
  }
}

await calls({ plain: way(got), bare: way(got), tuned: way(api) })
