import { calls } from './calls.js'
// as documented
import axios from 'axios'
import axiosRetry, { isNetworkOrIdempotentRequestError, retryAfter } from 'axios-retry'

const api = axios.create()
axiosRetry(api, {
  retries: 5,
  // Never less than Retry-After; the default waits 0 ms where there is none.
  retryDelay: axiosRetry.exponentialDelay,
  // Told to wait longer than a minute, it gives the 429 back.
  retryCondition: (e) => isNetworkOrIdempotentRequestError(e) && retryAfter(e) <= 60_000
})
// end

const plain = axios.create()
axiosRetry(plain)

const way = (client) => async (request) => {
  try {
    return (await client(request)).status
  } catch (e) {
    if (!e.response) throw e
    return e.response.status
  }
}

await calls({ plain: way(plain), bare: way(plain), tuned: way(api) })
