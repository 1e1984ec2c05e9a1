// What the scripts of all clients from npm share: a request said on the command
// line is made some times, in turn or together. Each call's end is a line,
// {"status": 200}.

const [settings, method, url, key, count, order] = process.argv.slice(2)

// Nobody waits an hour for these scripts: a timer that is long is told as it is set.
globalThis.setTimeout = new Proxy(globalThis.setTimeout, {
  apply (set, self, args) {
    if (args[1] >= 10_000) console.log(JSON.stringify({ timer: args[1] }))
    return Reflect.apply(set, self, args)
  }
})

/**
 * @param {Record<string, (request: {method: string, url: string, headers: object}) => Promise<number>>} ways
 *   by the name of the settings: makes a request, returns its status in the end
 */
export async function calls (ways) {
  const all = []
  for (let i = 0; i < Number(count); i++) {
    const call = ways[settings]({ method, url, headers: { 'x-api-key': key } })
      .then((status) => console.log(JSON.stringify({ status })))
    if (order === 'in-turn') await call
    all.push(call)
  }
  await Promise.all(all)
}
