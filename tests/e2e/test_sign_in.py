"""The page's sign-in in headless Chromium, while earlier requests are still under way."""

import pytest
from browser import CHROMIUM, browser
from cluster import Cluster, world
from http_api import Api
from waiting import eventually

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")

# Holds back the first answers to the page's requests for nodes, which are refusals, until release()
# is called.
HOLD_REFUSALS = """
    window.held = 0;
    const released = new Promise((resolve) => { window.release = resolve; });
    const original = window.fetch;
    window.fetch = async (path, options) => {
      const answer = await original(path, options);
      if (String(path).startsWith("api/v0/nodes") && answer.status === 401) {
        ++window.held;
        await released;
      }
      return answer;
    };
"""


def test_a_refusal_from_before_the_sign_in_does_not_ask_again(tmp_path):
    with world() as shell, browser(tmp_path) as chromium:
        api = Api.of(shell, Cluster(shell, cpus=1, dashboard_port=0).output)
        tab = chromium.page()
        tab.size(1280, 800)
        tab.open(f"http://{api.address}")
        tab.until("document.querySelector('#login').open")
        tab.run(HOLD_REFUSALS)
        tab.run("location.hash = 'nodes'")
        tab.until("window.held === 1")

        def typed():
            tab.click("#token")
            tab.run("document.querySelector('#token').value = ''")
            tab.type(api.token)
            return tab.run("document.querySelector('#token').value") == api.token

        assert eventually(typed)
        tab.press_enter()
        tab.until("!document.querySelector('#login').open")
        tab.run("window.release()")
        # The view of nodes has its answer.
        tab.has("127.0.0.1")
        assert not tab.run("document.querySelector('#login').open")
