#include "remote.h"

#include <iostream>
#include <numeric>
#include <stdexcept>

int Square(int x) { return x * x; }

double Total(const Order& order) {
  return std::accumulate(order.amounts.begin(), order.amounts.end(), 0.0);
}

int64_t SumOfSquares(int n) {
  std::vector<ray::ObjectRef<int>> squares;
  for (int i = 1; i <= n; ++i) squares.push_back(ray::Task(Square).Remote(i));
  int64_t sum = 0;
  for (const auto& value : ray::Get(squares)) sum += *value;
  return sum;
}

int Divide(int a, int b) {
  if (b == 0) throw std::invalid_argument("division by zero");
  return a / b;
}

std::string Greet(const std::string& name) {
  std::cout << "greeting " << name << std::endl;  // Appears on the driver's terminal.
  return "Hello, " + name + "!";
}

Ledger* Ledger::Create(double start) { return new Ledger(start); }

double Ledger::Book(const std::string& customer, double amount) {
  for (auto& [name, balance] : balances_) {
    if (name == customer) return balance += amount;
  }
  balances_.emplace_back(customer, start_ + amount);
  return balances_.back().second;
}

double Ledger::Balance(const std::string& customer) const {
  for (const auto& [name, balance] : balances_) {
    if (name == customer) return balance;
  }
  return start_;
}

double BookOrder(ray::ActorHandle<Ledger> ledger, const Order& order) {
  return *ledger.Task(&Ledger::Book).Remote(order.customer, Total(order)).Get();
}

RAY_REMOTE(Square, Total, SumOfSquares, Divide, Greet, BookOrder);
RAY_REMOTE(Ledger::Create, &Ledger::Book, &Ledger::Balance);
